//! Gates by name: each node waits at its own gate until the test opens it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

#[derive(Clone, Default)]
pub(crate) struct Gates(Arc<Mutex<BTreeMap<String, GateState>>>);

#[derive(Default)]
struct GateState {
    open: bool,
    waker: Option<Waker>,
}

pub(crate) struct Gate {
    gates: Gates,
    name: String,
}

impl Gates {
    pub(crate) fn pass(&self, name: &str) -> Gate {
        Gate { gates: self.clone(), name: name.to_owned() }
    }

    /// Returns the names of the closed gates at which a node waits.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let gates = self.0.lock().unwrap();
        gates.iter().filter(|(_, gate)| !gate.open).map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn open(&self, name: &str) {
        let mut gates = self.0.lock().unwrap();
        let gate = gates.get_mut(name).unwrap();
        gate.open = true;
        if let Some(waker) = gate.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut gates = self.gates.0.lock().unwrap();
        let gate = gates.entry(self.name.clone()).or_default();
        gate.waker = Some(cx.waker().clone());
        if gate.open { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.gates.0.lock().unwrap().remove(&self.name);
    }
}
