//! Counts the allocations of every case. Linking the counter replaces the allocator, so times are not
//! measured here.

use agentgraph_benches::Allocated;

fn main() -> Result<(), agentgraph_benches::Problem> {
    agentgraph_benches::count_allocations(|work| {
        let counted = allocation_counter::measure(work);
        Allocated { count: counted.count_total, bytes: counted.bytes_total }
    })
}
