//! A durable step is never done again once its result is stored, however its node comes to run again.

mod calls;
mod passes;
mod reruns;
mod stored;
mod world;
