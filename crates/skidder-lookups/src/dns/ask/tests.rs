//! Asking over TLS.

use super::*;
use domain::base::{Message, MessageBuilder, iana::Rcode};
use domain::rdata::A;
use rustls::pki_types::PrivateKeyDer;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::net::TcpListener;

/// A server for one question, and a client's settings that trust it.
fn serve() -> (u16, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let connection = ServerConnection::new(Arc::new(server)).unwrap();
        let mut stream = StreamOwned::new(connection, listener.accept().unwrap().0);
        let mut length = [0; 2];
        // A client that does not trust the certificate sends nothing.
        if stream.read_exact(&mut length).is_err() {
            return;
        }
        let mut query = vec![0; u16::from_be_bytes(length).into()];
        stream.read_exact(&mut query).unwrap();
        let query = Message::from_octets(query).unwrap();
        let mut answer = MessageBuilder::new_vec().start_answer(&query, Rcode::NOERROR).unwrap();
        let name = query.first_question().unwrap().into_qname();
        answer.push((name, 60, A::from_octets(192, 0, 2, 7))).unwrap();
        let answer = answer.finish();
        stream.write_all(&(answer.len() as u16).to_be_bytes()).unwrap();
        stream.write_all(&answer).unwrap();
        stream.flush().unwrap();
    });
    (port, Arc::new(client))
}

#[test]
fn a_server_is_asked_over_tls_if_its_certificate_is_right() {
    let (port, client) = serve();
    let ask = |name: &str, port, client: &Arc<ClientConfig>| {
        let transport = Transport::Tls(Arc::clone(client));
        let servers = vec![(name.to_owned(), port)];
        Resolver::new(servers, transport, Duration::from_secs(10)).ask(Question::A, "host.test")
    };
    let answer = ask("localhost", port, &client).unwrap();
    assert_eq!(answer, Answer { texts: vec!["192.0.2.7".into()], time: Duration::from_mins(1) });
    let (port, client) = serve();
    let error = ask("127.0.0.1", port, &client).unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
}
