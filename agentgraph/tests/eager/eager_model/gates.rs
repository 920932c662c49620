//! Gates: each task waits at a gate until the test opens it, so that the test decides in which order tasks
//! finish.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

#[derive(Clone, Default)]
pub struct Gates(Arc<Mutex<Vec<Waiting>>>);

/// A task at its gate.
struct Waiting {
    number: u64,
    open: bool,
    waker: Option<Waker>,
}

pub struct Gate {
    gates: Gates,
    number: Option<u64>,
}

impl Gates {
    /// Returns a gate. Its task is in line from the first poll until the gate is dropped.
    pub fn pass(&self) -> Gate {
        Gate { gates: self.clone(), number: None }
    }

    /// Returns the number of closed gates.
    pub fn waiting(&self) -> usize {
        self.0.lock().unwrap().iter().filter(|one| !one.open).count()
    }

    /// Opens the closed gate at `place`, in order of arrival.
    pub fn open(&self, place: usize) {
        let mut waiting = self.0.lock().unwrap();
        let one = waiting.iter_mut().filter(|one| !one.open).nth(place).unwrap();
        one.open = true;
        if let Some(waker) = one.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let gates = self.gates.clone();
        let mut waiting = gates.0.lock().unwrap();
        let waker = Some(cx.waker().clone());
        let Some(number) = self.number else {
            let number = NUMBERS.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            waiting.push(Waiting { number, open: false, waker });
            self.number = Some(number);
            return Poll::Pending;
        };
        let one = waiting.iter_mut().find(|one| one.number == number).unwrap();
        one.waker = waker;
        if one.open { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.gates.0.lock().unwrap().retain(|one| one.number != number);
        }
    }
}
