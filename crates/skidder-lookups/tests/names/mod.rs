//! A DNS server with a small zone, over UDP and TCP on one port.
#![allow(dead_code, reason = "not every test uses all of it")]
#![expect(clippy::unwrap_used, reason = "a test that cannot serve has failed")]

use domain::base::message_builder::AnswerBuilder;
use domain::base::{Message, MessageBuilder, Name, Rtype, ToName, iana::Rcode};
use domain::rdata::{A, Aaaa, Cname, Ptr, Srv, Txt};
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

type Builder = AnswerBuilder<Vec<u8>>;

/// The address of the server, and the number of its requests over UDP.
pub(crate) fn serve() -> (String, Arc<AtomicU32>) {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = udp.local_addr().unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        loop {
            let (length, from) = udp.recv_from(&mut buffer).unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            // An unsolicited answer comes first.
            udp.send_to(&answer(&forged(&buffer[..length]), false), from).unwrap();
            udp.send_to(&answer(&buffer[..length], true), from).unwrap();
        }
    });
    if let Ok(tcp) = TcpListener::bind(address) {
        std::thread::spawn(move || {
            for stream in tcp.incoming() {
                let mut stream = stream.unwrap();
                let mut length = [0; 2];
                stream.read_exact(&mut length).unwrap();
                let mut query = vec![0; u16::from_be_bytes(length).into()];
                stream.read_exact(&mut query).unwrap();
                let answer = answer(&query, false);
                stream.write_all(&(answer.len() as u16).to_be_bytes()).unwrap();
                stream.write_all(&answer).unwrap();
            }
        });
        return (address.to_string(), count);
    }
    // Another program has the port for TCP: try again.
    serve()
}

/// The address of a server with services: name, priority, and port on `localhost`.
pub(crate) fn serve_services(services: Vec<(String, u16, u16)>) -> String {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = udp.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = udp.recv_from(&mut buffer) {
            let query = Message::from_octets(&buffer[..length]).unwrap();
            let question = query.first_question().unwrap();
            let name = question.qname().to_name::<Vec<u8>>();
            let mut answer =
                MessageBuilder::new_vec().start_answer(&query, Rcode::NOERROR).unwrap();
            for (known, priority, port) in &services {
                if *known == name.to_string() && question.qtype() == Rtype::SRV {
                    let host: Name<Vec<u8>> = "localhost".parse().unwrap();
                    answer.push((&name, 60, Srv::new(*priority, 0, *port, host))).unwrap();
                }
            }
            udp.send_to(&answer.finish(), from).unwrap();
        }
    });
    address
}

/// The address of a server that never answers, and the number of its requests.
pub(crate) fn silent() -> (String, Arc<AtomicU32>) {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = udp.local_addr().unwrap().to_string();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        while udp.recv_from(&mut [0; 512]).is_ok() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, count)
}

/// The question with another id.
fn forged(query: &[u8]) -> Vec<u8> {
    let mut forged = query.to_vec();
    forged[0] ^= 0xff;
    forged
}

fn answer(query: &[u8], small: bool) -> Vec<u8> {
    let query = Message::from_octets(query).unwrap();
    let question = query.first_question().unwrap();
    let name = question.qname().to_name::<Vec<u8>>();
    let start = |code| MessageBuilder::new_vec().start_answer(&query, code).unwrap();
    let mut answer = start(Rcode::NOERROR);
    match (name.to_string().as_str(), question.qtype()) {
        ("host.test", Rtype::A) => hosts(&mut answer, &name),
        ("host.test", Rtype::AAAA) => {
            let address = Aaaa::new("2001:db8::1".parse().unwrap());
            answer.push((&name, 60, address)).unwrap();
        }
        ("alias.test", Rtype::A) => {
            let host: Name<Vec<u8>> = "host.test".parse().unwrap();
            answer.push((&name, 60, Cname::new(&host))).unwrap();
            hosts(&mut answer, &host);
        }
        ("text.test", Rtype::TXT) => {
            for text in [&b"\x06v=spf1\x04-all"[..], &b"\x05=open"[..]] {
                answer.push((&name, 60, Txt::from_octets(text).unwrap())).unwrap();
            }
        }
        ("big.test", Rtype::TXT) if small => {
            answer.header_mut().set_tc(true);
        }
        ("big.test", Rtype::TXT) => {
            let text: Txt<Vec<u8>> = Txt::build_from_slice(&[b'x'; 200]).unwrap();
            for _ in 0..10 {
                answer.push((&name, 60, &text)).unwrap();
            }
        }
        ("short.test", Rtype::A) => {
            answer.push((&name, 1, A::from_octets(192, 0, 2, 3))).unwrap();
        }
        ("long.test", Rtype::A) => {
            answer.push((&name, 3600, A::from_octets(192, 0, 2, 4))).unwrap();
        }
        ("1.2.0.192.in-addr.arpa", Rtype::PTR) => {
            let host: Name<Vec<u8>> = "gateway.test".parse().unwrap();
            answer.push((&name, 60, Ptr::new(host))).unwrap();
        }
        ("host.test" | "nothing.test", _) => {}
        _ => return start(Rcode::NXDOMAIN).finish(),
    }
    answer.finish()
}

fn hosts(answer: &mut Builder, name: &Name<Vec<u8>>) {
    for last in [1, 2] {
        answer.push((name, 60, A::from_octets(192, 0, 2, last))).unwrap();
    }
}
