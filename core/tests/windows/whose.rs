//! Counts belong to a cluster and a client, and are not mixed with counts of others.

use tallyfold::{
    Code, CollectOptions, CountTable, Error, FollowOptions, Frame, Headers, Machine,
    MachineOptions, Metric, Reconciliation, Spelling,
};

use super::world::{DIMENSIONS, World, collect_options, instant, new_year, step};
use crate::support::{ADDRESS, options};

const HOUR: u64 = 3_600;

fn client(change: impl FnOnce(&mut MachineOptions)) -> Machine {
    let mut options = options();
    change(&mut options);
    Machine::new(options).expect("good options")
}

fn named(name: &str) -> Machine {
    client(|options| options.identity = Some(name.to_owned()))
}

/// The counts of the hour that begins `after` hours after the new year, read by this client.
fn hour(world: &mut World, machine: &Machine, after: u64) -> CountTable {
    let mut collect = machine.collect(hour_options(after)).expect("good options");
    world.run(&mut collect, |_| None);
    collect.finish().expect("a table")
}

fn hour_options(after: u64) -> CollectOptions {
    collect_options((after + 1) * HOUR, "30m").start(instant(after * HOUR))
}

fn text(error: &Error) -> String {
    error.text_in(Spelling::Python).to_string()
}

#[test]
fn an_identity_is_the_address_and_the_client_without_a_secret() {
    let text = |machine: Machine| machine.identity().as_str().expect("known").to_owned();
    let usual = text(client(|_| ()));
    assert_eq!(usual, format!("{ADDRESS}, client sandbox-client"));
    let with_key = |key: &str| {
        text(client(|options| {
            let headers = ["x-tenant", key].map(str::to_owned).to_vec();
            options.headers = Headers::new(headers).expect("good headers");
        }))
    };
    assert!(with_key("key-of-a").starts_with(&format!("{usual}, headers ")));
    assert_ne!(with_key("key-of-a"), with_key("key-of-b"));
    assert!(!with_key("key-of-a").contains("key-of"));
    assert_eq!(text(named("production")), "production");
    let slip = Machine::new(options().identity(String::new()));
    assert_eq!(slip.expect_err("a slip").argument_name(), Some("identity"));
}

/// Another client's answers must not be found in a store that several servers share.
#[test]
fn a_client_of_unknown_tokens_has_no_name_for_a_shared_store() {
    let with_tokens = |options: &mut MachineOptions| {
        (options.client_id, options.client_secret) = (None, None);
        options.host_tokens = true;
    };
    let error = client(with_tokens).shared_identity().map(str::to_owned);
    let error = error.expect_err("whose are they?");
    assert_eq!((error.code(), error.argument_name()), (Code::MissingArgument, Some("identity")));
    let named = client(|options| {
        with_tokens(options);
        options.identity = Some("tenant a".to_owned());
    });
    assert_eq!(named.shared_identity().ok(), Some("tenant a"));
}

#[test]
fn tables_of_other_clusters_are_not_merged() {
    let mut world = World::with_events(4 * HOUR, 200);
    let (eu, us) = (named("eu"), named("us"));
    let (first, second) = (hour(&mut world, &eu, 0), hour(&mut world, &eu, 1));
    let foreign = hour(&mut world, &us, 1);
    assert_eq!(
        first.merge(&second, false).map(|sum| sum.identity().clone()).as_ref(),
        Ok(eu.identity())
    );
    let error = first.merge(&foreign, false).expect_err("another cluster's");
    assert_eq!(error.code(), Code::IncompatibleTables);
    assert_eq!(
        text(&error),
        "incompatible_tables: other: these are counts of us, not of eu; if both are the same, give clients the identity \"eu\""
    );
    for tables in [[&first, &foreign], [&foreign, &first]] {
        let error = CountTable::merge_all(tables).expect_err("another cluster's");
        assert_eq!(error.code(), Code::IncompatibleTables);
    }
    // Saved tables know it, too, and those of earlier versions go with any.
    let saved = CountTable::from_json(foreign.to_json().as_bytes()).expect("a table");
    assert_eq!(saved, foreign);
    assert!(first.merge(&saved, false).is_err());
    let unknown = without_identity(&foreign);
    let sum = first.merge(&unknown, false).expect("unknown goes with any");
    assert_eq!(sum.identity().as_str(), Some("eu"));
    assert_eq!(unknown.merge(&first, false).as_ref(), Ok(&sum));
    assert!(CountTable::merge_all([&unknown, &first, &hour(&mut world, &us, 2)]).is_err());

    let have = |table: &CountTable| {
        eu.collect(collect_options(4 * HOUR, "30m").have(table.clone()))
            .map(drop)
            .map_err(|error| (error.code(), error.argument_name().map(str::to_owned)))
    };
    assert_eq!(have(&first), Ok(()));
    assert_eq!(have(&foreign), Err((Code::IncompatibleTables, Some("have".to_owned()))));
}

/// The same table, as an earlier version saves it.
fn without_identity(table: &CountTable) -> CountTable {
    let json = table.to_json();
    let of = format!("\"identity\":{:?},", table.identity().as_str().expect("known"));
    let json = json.replacen(&of, "", 1).replacen("table/2", "table/1", 1);
    let digest = json.find("\"digest\"").expect("a digest");
    let end = digest + json[digest..].find(',').expect("more") + 1;
    let json = [&json[..digest], &json[end..]].concat();
    CountTable::from_json(json.as_bytes()).expect("a table")
}

#[test]
fn clusters_are_added_up_on_purpose() {
    let mut world = World::with_events(4 * HOUR, 200);
    let eu = hour(&mut world, &named("eu"), 0);
    let us = hour(&mut world, &named("us"), 0);
    let both = CountTable::combine([&eu, &us], "all clusters").expect("a sum");
    assert_eq!(both.totals().success, 2 * eu.totals().success);
    assert_eq!(both.windows(), eu.windows());
    assert_eq!(both.identity().as_str(), Some("all clusters"));
    assert_eq!(both.reconciliation(), Reconciliation::Balanced);
    assert!(both.merge(&hour(&mut world, &named("eu"), 1), false).is_err());
    // Another cluster was read by other windows.
    let options = hour_options(0).window(step("1h"));
    let mut collect = named("ap").collect(options).expect("good options");
    world.run(&mut collect, |_| None);
    let whole = collect.finish().expect("a table");
    for tables in [[&eu, &us, &whole], [&whole, &eu, &us]] {
        let all = CountTable::combine(tables, "all clusters").expect("a sum");
        assert_eq!(all.windows(), whole.windows());
        assert_eq!(all.totals().errors, 3 * eu.totals().errors);
    }
    let refused = |tables: &[&CountTable], label: &str| {
        let refused = CountTable::combine(tables.iter().copied(), label);
        refused.expect_err("a refusal").code()
    };
    let later = hour(&mut world, &named("us"), 1);
    assert_eq!(refused(&[&eu, &later], "all"), Code::IncompatibleTables);
    assert_eq!(refused(&[&eu, &eu], "all"), Code::IncompatibleTables);
    assert_eq!(refused(&[&eu, &us], ""), Code::InvalidArgument);
    assert_eq!(refused(&[], "all"), Code::MissingArgument);
}

#[test]
fn states_belong_to_a_client_and_say_whose_they_are() {
    let follow = |machine: &Machine, state: Option<String>| {
        let options =
            FollowOptions::new(Metric::EventDelivery, new_year(), &DIMENSIONS, step("1h"));
        machine.follow(&options.state(state))
    };
    let (eu, us) = (client(|_| ()), named("us"));
    let state = follow(&eu, None).expect("good options").state();
    assert!(follow(&eu, Some(state.clone())).is_ok());
    let error = follow(&us, Some(state.clone())).map(drop).expect_err("another's");
    assert_eq!(error.code(), Code::InvalidCheckpoint);
    assert_eq!(error.path(), Some("$.query.cluster"));
    let said = text(&error);
    let expected = format!(
        "it was made with identity \"{ADDRESS}, client sandbox-client\", not \"us\"; to resume it, pass the same identity"
    );
    assert!(said.contains(&expected), "{said}");
    // At another port, under the same name.
    let moved = client(|options| {
        options.cluster_endpoint = Some("https://moved.example:8443".to_owned());
        options.identity = eu.identity().as_str().map(str::to_owned);
    });
    assert!(follow(&moved, Some(state)).is_ok());
}
