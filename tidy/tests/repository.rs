//! The repository, held against every rule.

use std::sync::LazyLock;

use interlock_tidy::{Tree, assert_none, metadata, rules};

static TREE: LazyLock<Tree> = LazyLock::new(|| Tree::of_repository().expect("the repository can be read"));

/// A walk that finds nothing would let every other test pass.
#[test]
fn the_walk_sees_the_repository() {
    for path in ["Cargo.toml", "Makefile", ".ci/run", "tidy/src/lib.rs", "docs/decisions"] {
        assert!(TREE.contains(path), "{path}");
    }
    assert!(!TREE.contains("target"));
}

#[test]
fn dependencies_point_downhill() {
    assert_none(rules::direction::check(&TREE, &metadata::manifests()));
}

#[test]
fn folders_do_not_use_each_other_in_circles() {
    assert_none(rules::circles::check(&TREE));
}

#[test]
fn files_beside_the_folders_do_not_use_each_other_in_circles() {
    assert_none(rules::circles::check_files(&TREE));
}

#[test]
fn dependencies_are_licensed_and_not_doubled() {
    assert_none(rules::dependencies::check(&TREE, &metadata::graph()));
}

#[test]
fn files_are_short() {
    assert_none(rules::length::check(&TREE));
}

#[test]
fn half_of_the_files_fit_on_a_few_screens() {
    assert_none(rules::length::check_median(&TREE));
}

#[test]
fn names_say_something() {
    assert_none(rules::names::check(&TREE));
}

#[test]
fn silenced_lints_have_a_reason() {
    assert_none(rules::attributes::check(&TREE));
}

#[test]
fn nothing_is_marked_unfinished() {
    assert_none(rules::unfinished::check(&TREE));
}

#[test]
fn every_assertion_is_in_the_tests_at_least() {
    assert_none(rules::left_out::check(&TREE));
}

#[test]
fn every_test_is_run() {
    assert_none(rules::unrun::check(&TREE));
}

#[test]
fn unsafe_stays_in_the_sandbox() {
    assert_none(rules::unsafe_code::check(&TREE));
}

#[test]
fn sql_stays_in_the_store() {
    assert_none(rules::sql::check(&TREE));
}

#[test]
fn routes_reach_the_store_through_one_tenants_handle() {
    assert_none(rules::store_access::check(&TREE));
}

#[test]
fn time_and_randomness_are_parameters() {
    assert_none(rules::clock::check(&TREE));
}

#[test]
fn there_is_one_spelling() {
    assert_none(rules::spelling::check(&TREE));
}

#[test]
fn migrations_do_not_change() {
    assert_none(rules::migrations::check(&TREE));
}

#[test]
fn links_lead_somewhere() {
    assert_none(rules::links::check(&TREE));
}

#[test]
fn make_commands_in_pages_exist() {
    assert_none(rules::make_targets::check(&TREE));
}

#[test]
fn states_have_one_name() {
    assert_none(rules::states::check(&TREE));
}

#[test]
fn what_is_cited_is_here() {
    assert_none(rules::documents::check(&TREE));
}

#[test]
fn a_type_name_stands_once_in_a_crate() {
    assert_none(rules::type_names::check(&TREE));
}

#[test]
fn controls_are_shown_by_tests_that_exist() {
    assert_none(rules::controls::check(&TREE));
}

#[test]
fn the_comparison_claims_what_tests_show() {
    assert_none(rules::comparison::check(&TREE));
}
