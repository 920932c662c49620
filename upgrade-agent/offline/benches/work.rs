//! The work of reading a message, by its length. `cargo bench -p upgrade-offline-model` prints the steps of
//! the parser at 1,000 and at 100,000 characters, and fails if the work grows faster than the length.

use upgrade_offline_model::work_of_reading;

/// The most that the work of a hundred times the length may be.
const MOST: f64 = 110.0;

fn main() {
    let mut failed = false;
    for text in [
        "start Hints and stop Boost, ",
        "delete Hints because I said so. ",
        "exclude users a, b, c, ",
        "blorp ",
    ] {
        let message = |length| text.chars().cycle().take(length).collect::<String>();
        let (small, large) = (work_of_reading(&message(1_000)), work_of_reading(&message(100_000)));
        let ratio = large as f64 / small as f64;
        failed |= ratio > MOST;
        println!("{text:34} {small:>9} steps at 1,000   {large:>11} at 100,000   {ratio:6.1}");
    }
    if failed {
        eprintln!("the work grows faster than the message");
        std::process::exit(1);
    }
}
