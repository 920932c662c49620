//! Counts the allocations of every case. Linking the counter replaces the allocator, so times are not
//! measured here.

use agentgraph_benches::{Allocated, count_allocations, engine_cases};

fn main() {
    count_allocations(engine_cases(), |work| {
        let counted = allocation_counter::measure(work);
        Allocated { count: counted.count_total, bytes: counted.bytes_total }
    });
}
