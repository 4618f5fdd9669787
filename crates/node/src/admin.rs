//! Health and metrics over HTTP, for the operator of this machine: `/healthz`, `/readyz`, `/metrics`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tiny_http::{Header, Method, Response, Server};

/// What the pages say.
pub(crate) trait Pages: Send + Sync {
    /// Whether jobs can be taken; if not, why.
    fn ready(&self) -> Result<(), String>;
    /// The metrics, as text.
    fn metrics(&self) -> String;
}

/// Serves the pages until it is dropped.
pub(crate) struct Admin {
    server: Arc<Server>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    pub(crate) fn start(address: SocketAddr, pages: Arc<dyn Pages>) -> io::Result<Self> {
        let server = Server::http(address).map_err(io::Error::other)?;
        let server = Arc::new(server);
        let bound = server.server_addr().to_ip().unwrap_or(address);
        let serving = Arc::clone(&server);
        let thread = thread::Builder::new()
            .name("admin".into())
            .stack_size(256 << 10)
            .spawn(move || {
                for request in serving.incoming_requests() {
                    let response = answer(request.method(), request.url(), &*pages);
                    // The caller may have gone.
                    let _ = request.respond(response);
                }
            })?;
        Ok(Admin {
            server,
            address: bound,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            // A panic in it was printed there.
            let _ = thread.join();
        }
    }
}

fn answer(method: &Method, url: &str, pages: &dyn Pages) -> Response<io::Cursor<Vec<u8>>> {
    let page = |code: u16, text: &str| Response::from_string(text).with_status_code(code);
    if *method != Method::Get && *method != Method::Head {
        return page(405, "only GET\n");
    }
    match url.split('?').next().unwrap_or_default() {
        "/healthz" => page(200, "alive\n"),
        "/readyz" => match pages.ready() {
            Ok(()) => page(200, "ready\n"),
            Err(why) => page(503, &format!("not ready: {why}\n")),
        },
        "/metrics" => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            let response = page(200, &pages.metrics());
            match Header::from_bytes("Content-Type", kind) {
                Ok(header) => response.with_header(header),
                Err(()) => response,
            }
        }
        _ => page(404, "there are /healthz, /readyz and /metrics\n"),
    }
}
