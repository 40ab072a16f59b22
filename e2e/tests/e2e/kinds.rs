//! The embedded server's table of types is that of the pinned Kubernetes version.

use std::io::Read as _;
use std::process::Command;

use flate2::read::GzDecoder;

const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/go");
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/apiserver/src/kinds/types.gz");

#[test]
fn the_table_of_types_is_that_of_the_pinned_version() {
    if Command::new("go").arg("version").output().is_err() {
        println!("kinds: skipped, go is not installed");
        return;
    }
    let made = Command::new("go").args(["run", "./kinds"]).current_dir(MODULE).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made = String::from_utf8(made.stdout).unwrap();
    let mut kept = String::new();
    GzDecoder::new(std::fs::File::open(TABLE).unwrap()).read_to_string(&mut kept).unwrap();
    let differs = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    assert!(kept == made, "`cargo xtask truth` writes the table; the first different line: {differs:?}");
    println!("kinds: {} lines are the same", kept.lines().count());
}
