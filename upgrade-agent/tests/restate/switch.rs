//! [`Switch`]: one address for several workers, as a proxy before them has.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};

/// Passes each connection to the first worker that takes it, and ends it with that worker.
pub(crate) struct Switch {
    pub(crate) url: String,
}

impl Switch {
    pub(crate) fn before(ports: [u16; 2]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let worker = ports.iter().find_map(|port| TcpStream::connect(("127.0.0.1", *port)).ok());
                if let (Ok(server), Some(worker)) = (stream, worker) {
                    join(&server, &worker);
                    join(&worker, &server);
                }
            }
        });
        Switch { url }
    }
}

/// Passes on the bytes of one direction. The end of it ends both directions.
fn join(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        // A killed worker resets its connections.
        let _ = io::copy(&mut from, &mut to);
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}
