#!/usr/bin/env python3
"""What SecretFlow SPU takes for the keys that two lists have in common, by the protocol of Raghuraman and Rindal (2022).

    python3.11 -m venv venv && venv/bin/pip install spu==0.9.5
    venv/bin/python bench/with_spu_psi.py [--keys 1000000] [--repeat 3]

Two processes on loopback, without TLS, against semi-honest parties. A line is one run: CPU-seconds, user and system, of both processes, and seconds by the clock, the median of the runs, with reading both lists and
writing the result, as `veil run` has them too.
"""

import argparse
import multiprocessing
import pathlib
import resource
import socket
import statistics
import tempfile
import time


def spent():
    """User and system time of this process, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def party(rank, ports, folder, said):
    import spu.psi as psi
    from spu.libspu import link

    desc = link.Desc()
    for k, port in enumerate(ports):
        desc.add_party(f"p{k}", f"127.0.0.1:{port}")
    context = link.create_brpc(desc, rank)
    config = psi.PsiExecuteConfig(
        psi.PsiProtocolConfig(psi.PsiProtocol.PROTOCOL_RR22, receiver_rank=1),
        psi.InputParams(path=f"{folder}/{rank}.csv", selected_keys=["id"], keys_unique=True),
        psi.OutputParams(path=f"{folder}/out{rank}.csv", disable_alignment=True),
    )
    before, start = spent(), time.perf_counter()
    report = psi.psi_execute(config, context)
    said.put((rank, spent() - before, time.perf_counter() - start, report.intersection_count))
    context.stop_link()


def free_ports():
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def run(keys):
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(2):
            first = rank * (keys // 2)
            lines = "\n".join(str(10**9 + number) for number in range(first, first + keys))
            pathlib.Path(folder, f"{rank}.csv").write_text(f"id\n{lines}\n")
        said, ports = multiprocessing.Queue(), free_ports()
        processes = [multiprocessing.Process(target=party, args=(rank, ports, folder, said)) for rank in range(2)]
        for process in processes:
            process.start()
        results = sorted(said.get() for _ in processes)
        for process in processes:
            process.join()
        found = sum(1 for _ in open(f"{folder}/out1.csv")) - 1
        assert found == keys - keys // 2, f"{found} keys"
        return sum(result[1] for result in results), max(result[2] for result in results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    runs = [run(args.keys) for _ in range(args.repeat)]
    cpu, wall = (statistics.median(values) for values in zip(*runs))
    print(f"psi by spu, {args.keys} keys a list: {cpu:.2f} CPU-s of both, {wall:.2f} s")


if __name__ == "__main__":
    main()
