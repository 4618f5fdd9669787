/* The part of libfabric that a link uses, as plain functions: one endpoint, one peer, a ring into which the peer writes, and
 * slots from which this side does.
 *
 * The library is opened when it is first asked for, so that a program with this in it starts where there is none. The functions
 * are those of its ABI 1.3 (libfabric 1.9 and later, 2.x too); everything else goes through tables of functions that the
 * library hands out, by inline functions of its headers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define API FI_VERSION(1, 9)
#define EVENTS 16

static struct {
    int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
    void (*freeinfo)(struct fi_info *);
    struct fi_info *(*dupinfo)(const struct fi_info *);
    int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
    const char *(*strerror)(int);
    char missing[256];
} lib;

static pthread_once_t loaded = PTHREAD_ONCE_INIT;

/* Opens the library, and asks it the first question, with which its providers start. */
static void start(void)
{
    void *handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *why = dlerror();
        snprintf(lib.missing, sizeof lib.missing, "%s", why ? why : "it cannot be opened");
        return;
    }
    *(void **)&lib.getinfo = dlvsym(handle, "fi_getinfo", "FABRIC_1.3");
    *(void **)&lib.freeinfo = dlvsym(handle, "fi_freeinfo", "FABRIC_1.3");
    *(void **)&lib.dupinfo = dlvsym(handle, "fi_dupinfo", "FABRIC_1.3");
    *(void **)&lib.fabric = dlvsym(handle, "fi_fabric", "FABRIC_1.1");
    *(void **)&lib.strerror = dlvsym(handle, "fi_strerror", "FABRIC_1.0");
    if (!lib.getinfo || !lib.freeinfo || !lib.dupinfo || !lib.fabric || !lib.strerror) {
        snprintf(lib.missing, sizeof lib.missing, "it is older than 1.9");
        return;
    }
    struct fi_info *all = NULL;
    if (!lib.getinfo(API, NULL, NULL, 0, NULL, &all))
        lib.freeinfo(all);
}

/* Some providers, and libraries of theirs, take signals, which are the program's. */
static void load(void)
{
    struct sigaction before[32];
    int known[32];
    for (int i = 1; i < 32; i++)
        known[i] = !sigaction(i, NULL, &before[i]);
    start();
    for (int i = 1; i < 32; i++)
        if (known[i])
            sigaction(i, &before[i], NULL);
}

/* What a link has at one peer. */
struct veil_fabric {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *ring_mr, *out_mr;
    uint8_t *ring, *out;
    size_t ring_bytes, out_bytes, writes;
    struct fi_context2 *contexts;
    int wait_fd;
    fi_addr_t peer;
    uint64_t peer_base, peer_key;
};

struct veil_fabric_event {
    uint64_t data;
    uint32_t rung;
    uint32_t write;
};

static int failed(char *why, size_t bytes, const char *what, int error)
{
    snprintf(why, bytes, "%s: %s", what, lib.strerror(error < 0 ? -error : error));
    return -1;
}

/* Whether the library is here; if not, `why` says what is missing. */
int veil_fabric_load(char *why, size_t bytes)
{
    pthread_once(&loaded, load);
    snprintf(why, bytes, "%s", lib.missing);
    return lib.missing[0] ? -1 : 0;
}

static struct fi_info *wanted(const char *provider, const char *own, uint64_t slot)
{
    struct fi_info *hints = lib.dupinfo(NULL);
    if (!hints)
        return NULL;
    hints->caps = FI_MSG | FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->ep_attr->max_msg_size = slot;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->cq_data_size = 4;
    hints->fabric_attr->prov_name = strdup(provider);
    if (own) {
        hints->addr_format = FI_ADDR_STR;
        hints->src_addr = strdup(own);
        hints->src_addrlen = strlen(own) + 1;
    }
    return hints;
}

/* The first way that a provider offers: from the address of `node`, if it knows addresses of that kind. */
static int find(const char *provider, const char *node, const char *own, uint64_t slot, struct fi_info **info)
{
    struct fi_info *hints = wanted(provider, own, slot);
    if (!hints)
        return -FI_ENOMEM;
    int error = lib.getinfo(API, node, NULL, node ? FI_SOURCE : 0, hints, info);
    if (error && node)
        error = lib.getinfo(API, NULL, NULL, 0, hints, info);
    lib.freeinfo(hints);
    return error;
}

/* Whether a provider is here. */
int veil_fabric_has(const char *provider, uint64_t slot, char *why, size_t bytes)
{
    struct fi_info *info = NULL;
    int error = find(provider, NULL, NULL, slot, &info);
    if (error)
        return failed(why, bytes, "fi_getinfo", error);
    lib.freeinfo(info);
    return 0;
}

void veil_fabric_close(struct veil_fabric *f)
{
    int mr_first = f->info && (f->info->domain_attr->mr_mode & FI_MR_ENDPOINT);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == mr_first && f->ep) {
            fi_close(&f->ep->fid);
            f->ep = NULL;
        }
        if (pass != mr_first && f->ring_mr)
            fi_close(&f->ring_mr->fid);
        if (pass != mr_first && f->out_mr)
            fi_close(&f->out_mr->fid);
    }
    if (f->cq)
        fi_close(&f->cq->fid);
    if (f->av)
        fi_close(&f->av->fid);
    if (f->domain)
        fi_close(&f->domain->fid);
    if (f->fabric)
        fi_close(&f->fabric->fid);
    if (f->info)
        lib.freeinfo(f->info);
    if (f->ring)
        munmap(f->ring, f->ring_bytes);
    if (f->out) {
        explicit_bzero(f->out, f->out_bytes);
        munmap(f->out, f->out_bytes);
    }
    free(f->contexts);
    free(f);
}

static uint8_t *pages(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static int share(struct veil_fabric *f, void *at, size_t bytes, uint64_t access, uint64_t key, struct fid_mr **mr)
{
    int error = fi_mr_reg(f->domain, at, bytes, access, 0, key, 0, mr, NULL);
    if (!error && f->info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        error = fi_mr_bind(*mr, &f->ep->fid, 0);
        if (!error)
            error = fi_mr_enable(*mr);
    }
    return error;
}

static int prepare(struct veil_fabric *f, uint64_t key, const char **what)
{
    int error;
    *what = "fi_fabric";
    if ((error = lib.fabric(f->info->fabric_attr, &f->fabric, NULL)))
        return error;
    *what = "fi_domain";
    if ((error = fi_domain(f->fabric, f->info, &f->domain, NULL)))
        return error;
    struct fi_av_attr av = {.type = FI_AV_UNSPEC, .count = 1};
    *what = "fi_av_open";
    if ((error = fi_av_open(f->domain, &av, &f->av, NULL)))
        return error;
    struct fi_cq_attr cq = {.size = 256, .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
    *what = "fi_cq_open";
    if (fi_cq_open(f->domain, &cq, &f->cq, NULL)) {
        /* It has nothing to sleep on. */
        f->cq = NULL;
        cq.wait_obj = FI_WAIT_NONE;
        if ((error = fi_cq_open(f->domain, &cq, &f->cq, NULL)))
            return error;
    } else if (fi_control(&f->cq->fid, FI_GETWAIT, &f->wait_fd)) {
        f->wait_fd = -1;
    }
    *what = "fi_endpoint";
    if ((error = fi_endpoint(f->domain, f->info, &f->ep, NULL)))
        return error;
    *what = "fi_enable";
    if ((error = fi_ep_bind(f->ep, &f->av->fid, 0)) || (error = fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV)) ||
        (error = fi_enable(f->ep)))
        return error;
    *what = "fi_mr_reg";
    size_t size = f->info->domain_attr->mr_key_size;
    if (size && size < 8)
        key &= (UINT64_C(1) << (8 * size)) - 1;
    if ((error = share(f, f->ring, f->ring_bytes, FI_REMOTE_WRITE, key, &f->ring_mr)))
        return error;
    if (f->info->domain_attr->mr_mode & FI_MR_LOCAL)
        return share(f, f->out, f->out_bytes, FI_WRITE, key ^ 1, &f->out_mr);
    return 0;
}

/* Opens an endpoint: a ring of so many bytes for the peer to write into, `out_bytes` to write from, and at most so many writes
 * at once. NULL: `why` says what is wrong. */
struct veil_fabric *veil_fabric_open(const char *provider, const char *node, const char *own, uint64_t key, uint64_t slot,
                                     size_t ring_bytes, size_t out_bytes, size_t writes, char *why, size_t bytes)
{
    struct veil_fabric *f = calloc(1, sizeof *f);
    if (!f) {
        failed(why, bytes, "calloc", FI_ENOMEM);
        return NULL;
    }
    f->wait_fd = -1;
    f->peer = FI_ADDR_NOTAVAIL;
    f->ring_bytes = ring_bytes;
    f->out_bytes = out_bytes;
    f->writes = writes;
    const char *what = "fi_getinfo";
    int error = find(provider, node, own, slot, &f->info);
    if (!error) {
        what = "mmap";
        f->ring = pages(ring_bytes);
        f->out = pages(out_bytes);
        f->contexts = calloc(writes, sizeof *f->contexts);
        error = f->ring && f->out && f->contexts ? prepare(f, key, &what) : -FI_ENOMEM;
    }
    if (error) {
        failed(why, bytes, what, error);
        veil_fabric_close(f);
        return NULL;
    }
    return f;
}

/* Where this endpoint is: the length of its address, or 0 if it has none of at most `room` bytes. */
size_t veil_fabric_address(struct veil_fabric *f, uint8_t *at, size_t room)
{
    size_t length = room;
    return fi_getname(&f->ep->fid, at, &length) || length > room ? 0 : length;
}

/* What the peer adds to the offsets at which it writes. */
uint64_t veil_fabric_base(const struct veil_fabric *f)
{
    return f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)f->ring : 0;
}

uint64_t veil_fabric_key(const struct veil_fabric *f)
{
    return fi_mr_key(f->ring_mr);
}

/* Whom to write to. */
int veil_fabric_connect(struct veil_fabric *f, const uint8_t *address, uint64_t base, uint64_t key)
{
    f->peer_base = base;
    f->peer_key = key;
    return fi_av_insert(f->av, address, 1, &f->peer, 0, NULL) == 1 ? 0 : -1;
}

uint8_t *veil_fabric_out(struct veil_fabric *f)
{
    return f->out;
}

/* Copies what the peer wrote, which it may be changing. */
void veil_fabric_copy(const struct veil_fabric *f, size_t from, uint8_t *into, size_t bytes)
{
    memcpy(into, f->ring + from, bytes);
}

/* Writes `bytes` of `out` from `from` into the peer's ring at `to`, and rings with `data`. 0: it is under way, and ends with the
 * event `write`; 1: not now; negative: it failed. */
int veil_fabric_write(struct veil_fabric *f, size_t write, size_t from, size_t bytes, uint64_t to, uint64_t data)
{
    void *desc = f->out_mr ? fi_mr_desc(f->out_mr) : NULL;
    ssize_t error = fi_writedata(f->ep, f->out + from, bytes, desc, data, f->peer, f->peer_base + to, f->peer_key,
                                 &f->contexts[write]);
    return error == -FI_EAGAIN ? 1 : (int)error;
}

/* Moves bytes, and tells what came of it: how many events, or negative if the endpoint failed. */
int veil_fabric_read(struct veil_fabric *f, struct veil_fabric_event *events, char *why, size_t bytes)
{
    struct fi_cq_data_entry entries[EVENTS];
    ssize_t count = fi_cq_read(f->cq, entries, EVENTS);
    if (count == -FI_EAGAIN)
        return 0;
    if (count < 0) {
        struct fi_cq_err_entry entry = {0};
        int error = (int)count;
        if (count == -FI_EAVAIL && fi_cq_readerr(f->cq, &entry, 0) == 1)
            error = entry.err;
        return failed(why, bytes, "the fabric", error);
    }
    int kept = 0;
    for (ssize_t i = 0; i < count; i++) {
        struct fi_context2 *context = entries[i].op_context;
        if (entries[i].flags & FI_REMOTE_CQ_DATA)
            events[kept++] = (struct veil_fabric_event){.data = entries[i].data, .rung = 1};
        else if (context >= f->contexts && context < f->contexts + f->writes)
            events[kept++] = (struct veil_fabric_event){.write = (uint32_t)(context - f->contexts)};
    }
    return kept;
}

/* What becomes readable when there are events; negative if nothing does. */
int veil_fabric_wait_fd(const struct veil_fabric *f)
{
    return f->wait_fd;
}

/* Whether this side may sleep until then. */
int veil_fabric_may_sleep(struct veil_fabric *f)
{
    struct fid *fids[] = {&f->cq->fid};
    return fi_trywait(f->fabric, fids, 1) == 0;
}
