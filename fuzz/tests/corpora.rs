//! Replays what is in `corpus`, with cargo alone.
#![allow(missing_docs)]

use std::path::Path;

#[test]
fn every_input_in_the_corpora_is_dealt_with() {
    for (name, target) in kube_informer_fuzz::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let mut inputs = 0;
        for file in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            target(&std::fs::read(file.expect("a file").path()).expect("its bytes"));
            inputs += 1;
        }
        assert!(inputs >= 3, "{name} has {inputs} inputs only");
        target(b"");
    }
}
