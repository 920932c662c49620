//! The store of a graph's runs, and the leases that decide which run may write a thread.

pub(crate) mod lease;
pub(crate) mod read_only;
pub(crate) mod stop;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use agentgraph_checkpoint::behind::{self, Behind};
use agentgraph_checkpoint::leases::leases_of;
use agentgraph_checkpoint::{Checkpointer, Place, Retention};

use self::lease::{Keeper, LEASE};
use self::read_only::ReadOnly;
use crate::error::Error;
use crate::record::codec::Codec;

/// The store of a graph's runs, and the encoding of its state.
#[derive(Clone)]
pub(crate) struct Persistence {
    pub(crate) saver: Arc<dyn Checkpointer>,
    pub(crate) codec: Codec,
    /// Empty, except to read the records of a subgraph.
    pub(crate) namespace: Arc<str>,
    /// The queue that stores the checkpoints of runs in the background; empty before the first such run.
    behind: Arc<OnceLock<Arc<Behind>>>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) lease: Duration,
    /// The checkpoints that runs keep of their threads; all if `None`.
    pub(crate) retention: Option<Retention>,
}

impl Persistence {
    /// The threads of a store.
    pub(crate) fn new(saver: Arc<dyn Checkpointer>, codec: Codec) -> Self {
        let threads = Persistence::inside(saver, codec, Arc::default());
        let hears: Weak<Keeper> = Arc::downgrade(&threads.keeper);
        leases_of(&*threads.saver).hear_stops(hears);
        threads
    }

    /// A namespace of the threads of a store, for a run that has the lease of its thread.
    pub(crate) fn inside(saver: Arc<dyn Checkpointer>, codec: Codec, namespace: Arc<str>) -> Self {
        let keeper = Arc::default();
        Persistence { saver, codec, namespace, behind: Arc::default(), keeper, lease: LEASE, retention: None }
    }

    /// The place of a thread.
    pub(crate) fn place<'a>(&'a self, thread: &'a str) -> Place<'a> {
        Place { thread, namespace: &self.namespace }
    }

    /// Waits for records that earlier runs handed over. Their errors belong to those runs.
    pub(crate) async fn settle(&self, thread: &str) {
        if let Some(behind) = self.behind.get() {
            let _ = behind.settle(thread).await;
        }
    }

    /// The same threads, where nothing is stored.
    pub(crate) fn read_only(&self) -> (Self, Arc<ReadOnly>) {
        let saver = Arc::new(ReadOnly::of(Arc::clone(&self.saver)));
        (Persistence { saver: Arc::clone(&saver) as Arc<dyn Checkpointer>, ..self.clone() }, saver)
    }

    /// The queue in front of the saver, for runs that store in the background.
    pub(crate) fn behind(&self) -> Result<Arc<Behind>, Error> {
        behind::runtime()?;
        Ok(Arc::clone(self.behind.get_or_init(|| Arc::new(Behind::new(Arc::clone(&self.saver))))))
    }
}
