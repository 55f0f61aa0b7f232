//! A seed decides everything: the same one gives the same world, down to the last line of what happened.

use interlock_sim::run_seed;

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in 0..5 {
        let hash = || run_seed(seed, false).unwrap_or_else(|failed| panic!("{failed}")).hash;
        assert_eq!(hash(), hash(), "seed {seed} went two ways");
    }
}

#[test]
fn another_seed_is_another_world() {
    let hash = |seed| run_seed(seed, false).unwrap_or_else(|failed| panic!("{failed}")).hash;
    assert_ne!(hash(1), hash(2));
}
