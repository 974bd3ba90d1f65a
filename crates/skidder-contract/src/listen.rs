//! How servers of tests take connections: with or without TLS, each in a task of its own.

use std::future::Future;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A stream to read and write.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A free port of the loopback interface.
pub async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Reports every connection, and serves those whose handshake succeeds, until the runtime ends.
pub fn serve_all<F: Future<Output = ()> + Send>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    accepted: impl Fn() + Send + 'static,
    serve: impl Fn(Box<dyn Stream>) -> F + Clone + Send + Sync + 'static,
) {
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            tcp.set_nodelay(true).unwrap();
            accepted();
            let (serve, tls) = (serve.clone(), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => serve(Box::new(tcp)).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(tcp).await {
                            serve(Box::new(stream)).await;
                        }
                    }
                }
            });
        }
    });
}
