//! Counts the allocations of every case. Linking the counter replaces the allocator, so times are not
//! measured here. Fails if an entrant allocates more often than `allocations.csv` says.

use agentgraph_benches::{Allocated, count_allocations, engine_cases};

fn main() -> Result<(), agentgraph_benches::Problem> {
    count_allocations(&engine_cases(), |work| {
        let counted = allocation_counter::measure(work);
        Allocated { count: counted.count_total, bytes: counted.bytes_total }
    })
}
