//! Paths that no visitor means to ask for.

use super::*;

/// Fails if a prefix or a mutation of good paths is not answered at all.
#[test]
fn no_path_is_too_odd() {
    let seeds = [
        "/all/20200102030405mp_/http://æ.dk/x?y#z",
        "/all/timemap/link/1/http://a/",
        "/replay/all/*/a",
        "/all/getRecord?arcFile=%ff&arcOffset=1",
    ];
    for seed in seeds {
        for (at, _) in seed.char_indices() {
            for middle in ["", "%", "/", "\u{0}", "*", "é"] {
                let text = format!("{}{middle}{}", &seed[..at], &seed[at..]);
                if let Err(error) = ReplayRequest::parse(&text) {
                    assert!((400..500).contains(&error.status()), "{text}");
                }
            }
        }
    }
}
