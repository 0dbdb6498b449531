//! The live view of a served sandbox, in a pseudo-terminal whose screen the tests read.
#![cfg(unix)]

mod terminal;

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use vt100::Color;

use self::terminal::{Service, Watched};

/// Waits for the next quarter of an hour if this one ends soon, because the rows change then.
fn within_a_quarter() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let rest = Duration::from_secs(900 - now.as_secs() % 900);
    if rest < Duration::from_secs(30) {
        thread::sleep(rest);
    }
}

#[test]
fn a_long_range_shows_its_progress_until_it_is_read() {
    let service = Service::start(0, &[]);
    let long = ["delivery", "--since=10d", "--window=1h", "--by=reason"];
    let reading = Watched::spawn(service.command(&long), (100, 40));
    let is_bar = |line: &String| line.starts_with("default ") && line.contains("/241 windows, ");
    reading.wait("the bar", |lines| lines.iter().any(is_bar));
    let table =
        reading.wait("the table", |lines| lines.iter().any(|line| line.starts_with("total ")));
    assert!(table[0].starts_with("event_delivery by reason, "), "{table:#?}");
    assert!(!table.iter().any(is_bar), "{table:#?}");
}

#[test]
fn the_view_follows_the_size_and_restores_the_terminal() {
    within_a_quarter();
    let service = Service::start(0, &[]);
    let mut watched = Watched::in_shell(&service, &["--since", "3h"], (80, 24));
    let small = watched.wait("the table", is_complete);
    assert!(small[0].starts_with("tallyfold watch: event_delivery by integration"));
    assert!(small[1].contains("12 windows of 15m"), "{small:#?}");
    for name in ["errors▼", "change", "filtered", "delivered", "rate", "trend"] {
        assert!(small[3].contains(name), "{name}: {small:#?}");
    }
    assert!(small[5].starts_with("> 1 ") && small[6].starts_with("  2 "), "{small:#?}");
    assert!(small[23].starts_with("q quit  ? help  ↑↓ move  s sort  / filter  r read now"));
    assert!(watched.locked(|parser| parser.screen().alternate_screen()));

    watched.resize((200, 60));
    let large = watched.wait("the large screen", |lines| {
        lines.len() == 60 && lines[59].starts_with("q quit") && is_complete(lines)
    });
    assert!(large.iter().any(|line| line.contains("Changed in ")), "{large:#?}");
    assert!(large[3].contains("errors by window") && large[5].starts_with("> 1 "));

    watched.resize((80, 24));
    let again = watched.wait("the small screen", |lines| {
        lines.len() == 24 && lines[23].starts_with("q quit") && is_complete(lines)
    });
    assert!(!again.iter().any(|line| line.contains("Changed in ")), "{again:#?}");
    let names = |lines: &[String]| lines[3..6].to_vec();
    assert_eq!(names(&small), names(&again));

    watched.resize((30, 8));
    watched.wait("a word about the size", |lines| lines[2] == "Want 40x10");
    watched.resize((80, 24));
    watched.wait("the table", is_complete);

    let shell =
        watched.press_until("q", "the shell", |lines| lines.iter().any(|line| line == "after 0"));
    assert_eq!(shell[0], "before");
    watched.assert_restored();
}

#[test]
fn keys_move_sort_filter_and_show_the_help() {
    let service = Service::start(0, &[]);
    let mut watched = Watched::start(&service, &[], (80, 24));
    watched.wait("the table", is_complete);
    watched.send("jj");
    watched.wait("the third row", |lines| lines.iter().any(|line| line.starts_with("> 3 ")));
    watched.send("\x1b[A");
    watched.wait("the second row", |lines| lines.iter().any(|line| line.starts_with("> 2 ")));
    watched.send("G");
    watched
        .wait("the last row", |lines| lines[21].starts_with('>') && !lines[5].starts_with("  1 "));
    watched.send("gsssss");
    let by_name = watched.wait("rows by name", |lines| lines[3].contains("integration▲"));
    assert!(name(&by_name[5]) < name(&by_name[6]), "{by_name:#?}");

    watched.send("/ware");
    watched.wait("the filter", |lines| lines[3].starts_with("filter: ware_"));
    watched.send("\r");
    let kept = watched.wait("its rows", |lines| lines[3].starts_with("filter: ware "));
    assert!(kept[6].contains("Warehouse") && kept[7].is_empty(), "{kept:#?}");
    assert!(kept[3].ends_with("1 of 30 rows"), "{kept:#?}");
    watched.send("\x1b");
    watched.wait("all rows", |lines| lines[6].starts_with("  2 "));

    watched.send("?");
    watched.wait("the help", |lines| lines.iter().any(|line| line.contains("┌ Help ─")));
    watched.send("x");
    watched.wait("no help", |lines| !lines.iter().any(|line| line.contains("┌ Help ─")));

    watched.send("\x03");
    assert_eq!(watched.ended(), 130);
    watched.assert_restored();
}

#[test]
fn an_outage_is_shown_until_the_service_answers_again() {
    let service = Service::start(0, &[]);
    let port = service.port();
    let mut watched = Watched::start(&service, &["--by", "reason"], (100, 24));
    watched.wait("the table", is_complete);
    drop(service);
    watched.send("r");
    let down = watched.wait("the outage", |lines| {
        lines[22].starts_with("! the service does not answer; next try in ")
    });
    // Counts that were read stay on the screen.
    assert!(is_complete(&down), "{down:#?}");
    let _service = Service::start(port, &[]);
    watched.send("r");
    watched.wait("the service", |lines| !lines[22].starts_with('!'));
    watched.send("q");
    assert_eq!(watched.ended(), 0);
    watched.assert_restored();
}

#[test]
fn refused_credentials_are_shown() {
    let mut service = Service::start(0, &[]);
    service.settings.push(("TALLYFOLD_CLIENT_SECRET".to_owned(), "wrong".to_owned()));
    let mut watched = Watched::start(&service, &[], (100, 24));
    let lines = watched.wait("the refusal", |lines| lines[22].starts_with("! "));
    assert!(!lines.iter().any(|line| line.contains("wrong")), "{lines:#?}");
    assert!(lines[22].contains("token_refused"), "{lines:#?}");
    watched.send("q");
    assert_eq!(watched.ended(), 0);
}

#[test]
fn signals_restore_the_terminal() {
    let service = Service::start(0, &[]);
    let mut watched = Watched::start(&service, &[], (80, 24));
    watched.wait("the table", is_complete);
    for ask in ["signal", "key"] {
        match ask {
            "signal" => watched.signal("TSTP"),
            _ => watched.send("\x1a"),
        }
        watched.wait_for("the shell's screen", |parser| !parser.screen().alternate_screen());
        watched.stopped();
        watched.assert_restored();
        watched.signal("CONT");
        watched.wait_for("the view's screen", |parser| parser.screen().alternate_screen());
        watched.wait("the table", is_complete);
    }
    watched.signal("TERM");
    assert_eq!(watched.ended(), 143);
    watched.assert_restored();
}

#[test]
fn no_color_is_respected() {
    let service = Service::start(0, &[]);
    for (value, is_colored) in [("1", false), ("", true)] {
        let mut command = service.command(&["watch"]);
        command.env("NO_COLOR", value);
        let mut watched = Watched::spawn(command, (80, 24));
        watched.wait("the table", is_complete);
        let has_color = watched.locked(|parser| {
            let cell = |row, column| parser.screen().cell(row, column).cloned();
            let cells = (0..24).flat_map(|row| (0..80).filter_map(move |column| cell(row, column)));
            cells.into_iter().any(|cell| cell.fgcolor() != Color::Default)
        });
        assert_eq!(has_color, is_colored);
        watched.send("q");
        assert_eq!(watched.ended(), 0);
    }
}

#[test]
fn once_prints_the_view_as_text() {
    let service = Service::start(0, &[]);
    let printed =
        service.run(&["watch", "--once", "--since", "1h", "--top", "3", "--order", "name"]);
    let text = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(printed.status.code(), Some(0));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "tallyfold watch: event_delivery by integration");
    assert!(lines[1].contains("4 windows of 15m") && lines[3].contains("integration▲"), "{text}");
    assert!(lines[5].starts_with(" 1 A/B Testing"), "{text}");
    assert!(lines[7].starts_with(" 3 ") && lines[8].ends_with("~ may still change"), "{text}");
    assert_eq!(lines.len(), 9);
    assert!(!text.contains('\x1b'));

    let printed = service.run(&["watch", "--once", "--metric", "ingestion", "--by", "write_key"]);
    let text = String::from_utf8(printed.stdout).unwrap();
    assert!(text.contains("event_ingestion by write_key") && text.contains(" success"), "{text}");
}

#[test]
fn invalid_arguments_are_refused() {
    let service = Service::start(0, &[]);
    for (arguments, code, told) in [
        (&["watch"][..], 2, "--once"),
        (&["watch", "--since", "soon"], 2, "--since"),
        (&["watch", "--since", "0h"], 2, "--since"),
        (&["watch", "--since", "9999d", "--once"], 2, "1000 windows"),
        (&["watch", "--window", "7m", "--once"], 2, "--window"),
        (&["watch", "--by", "colour", "--once"], 2, "colour"),
        (&["watch", "--metric", "ingestion", "--by", "reason", "--once"], 2, "reason"),
    ] {
        let printed = service.run(arguments);
        let stderr = String::from_utf8(printed.stderr).unwrap();
        assert_eq!(printed.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(told), "{arguments:?}: {stderr}");
        assert!(printed.stdout.is_empty());
    }
}

#[test]
fn once_has_the_exit_codes_of_other_commands() {
    let down = Service::start(
        0,
        &[r#"{"kind": "status", "status": 503, "endpoint": "event_delivery", "every": 1}"#],
    );
    let quick = ["watch", "--once", "--patience", "0s", "--max-retries", "0"];
    assert_eq!(down.run(&quick).status.code(), Some(4));
    let mut refused = Service::start(0, &[]);
    refused.settings.push(("TALLYFOLD_CLIENT_SECRET".to_owned(), "wrong".to_owned()));
    assert_eq!(refused.run(&quick).status.code(), Some(3));
    let partly = Service::start(
        0,
        &[r#"{"kind": "status", "status": 503, "endpoint": "event_delivery", "every": 5}"#],
    );
    let printed = partly.run(&quick);
    let text = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(printed.status.code(), Some(6), "{text}");
    assert!(text.contains(": it could not be read"), "{text}");
}

/// Whether all windows were read.
fn is_complete(lines: &[String]) -> bool {
    let is_read =
        lines.get(1).is_some_and(|line| line.contains("read ") && !line.contains("not read"));
    is_read && !lines[2].ends_with(" windows") && lines.iter().any(|line| line.starts_with('>'))
}

/// The name in a row: between the rank and the errors.
fn name(row: &str) -> &str {
    row[4..].split("  ").next().unwrap()
}

#[test]
fn findings_are_shown_below_the_table() {
    let service = Service::start(0, &[]);
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("health.toml");
    // Every integration exceeds this error rate.
    let text = "window = \"15m\"\n[[rule]]\nname = \"any error\"\nkind = \"threshold\"\nmeasure = \"error_rate\"\nabove = \"0.01%\"\nseverity = \"critical\"\n";
    std::fs::write(&rules, text).unwrap();
    let flags = ["--since", "3h", "--settle", "0s", "--rules", rules.to_str().unwrap()];
    let watched = Watched::in_shell(&service, &flags, (120, 24));
    let screen = watched
        .wait("the finding", |lines| lines.len() == 24 && lines[22].starts_with("critical: "));
    assert!(screen[22].contains("attempts failed"), "{screen:#?}");
}
