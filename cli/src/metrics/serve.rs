//! Serving the page over HTTP.
//!
//! Whoever asks, and however slowly, gets an answer or is cut off. So many are served at a time that a slow one holds nobody up.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::prometheus_text;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::args::Limits;
use crate::exit::{Failure, say};
use crate::look::look;
use crate::metrics::page::page;

/// How many are answered at a time; others wait until they are accepted.
const CONNECTIONS: usize = 64;
/// How long a request may take to come.
const ASKED: Duration = Duration::from_secs(3);
/// How long a connection lasts: a request, and its answer.
const ANSWERED: Duration = Duration::from_secs(10);

/// Answers requests, until a signal ends the process.
pub(crate) fn serve(limits: &Limits, address: &str) -> Result<ExitCode, Failure> {
    let listener = TcpListener::bind(address).map_err(|error| Failure::address(address, &error))?;
    let failed = |error: io::Error| Failure::io("serving", &error);
    listener.set_nonblocking(true).map_err(failed)?;
    say(&format!("serving http://{}/metrics", listener.local_addr().map_err(failed)?));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(accept(Arc::new(limits.clone()), listener)).map_err(failed)
}

async fn accept(limits: Arc<Limits>, listener: TcpListener) -> io::Result<ExitCode> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    // It is never closed.
    while let Ok(seat) = seats.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // There are too many open files, or the other one has gone: it gets better.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let limits = limits.clone();
        tokio::spawn(async move {
            let answer = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&limits, &request))));
            let mut server = http1::Builder::new();
            server.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(ASKED);
            // Who asked has gone, or was too slow, if this fails.
            let _ = timeout(ANSWERED, server.serve_connection(TokioIo::new(stream), answer)).await;
            drop(seat);
        });
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(limits: &Limits, request: &Request<Incoming>) -> Response<String> {
    let with_status = |status: StatusCode, text: String| {
        let mut response = Response::new(text);
        *response.status_mut() = status;
        response
    };
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => match look(limits) {
            Ok(looks) => {
                let mut response = Response::new(page(looks));
                let kind = HeaderValue::from_static(prometheus_text::CONTENT_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            Err(failure) => with_status(StatusCode::INTERNAL_SERVER_ERROR, failure.message + "\n"),
        },
        (_, "/metrics") => {
            let mut response = with_status(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        _ => with_status(StatusCode::NOT_FOUND, "the page is /metrics\n".to_owned()),
    }
}
