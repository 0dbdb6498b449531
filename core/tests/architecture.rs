//! The invariants of ARCHITECTURE.md that can be read off the source.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test says so when it fails"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// The modules by floor: imports go down, never sideways but to `error`.
const FLOORS: [&[&str]; 6] = [
    &["secret", "time", "tree", "error"],
    &["json", "http", "dimension", "retry", "step", "window"],
    &["table", "token", "plan"],
    &["fold"],
    &["endpoint"],
    &["client", "sandbox"],
];

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// The code of every source file of a crate, with the module it belongs to.
fn sources_of(crate_folder: &str) -> Vec<(String, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(crate_folder)
        .join("src");
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the source is there") {
            let path = entry.expect("a folder that can be read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let inside = path
                .strip_prefix(&root)
                .expect("below src")
                .to_string_lossy();
            let module = inside.split(['/', '.']).next().expect("a name").to_owned();
            let text = fs::read_to_string(&path).expect("UTF-8");
            // A link in a doc comment is no import.
            let code = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let code = code.collect::<Vec<_>>().join("\n");
            sources.push((module, path, code));
        }
    }
    assert!(sources.len() > 10, "the source was found");
    sources
}

/// Those of the core.
fn sources() -> Vec<(String, PathBuf, String)> {
    sources_of("core")
}

#[test]
fn imports_go_down_the_floors() {
    let mut checked = 0;
    for (module, path, text) in sources().iter().filter(|(module, ..)| module != "lib") {
        let own = floor(module).unwrap_or_else(|| panic!("{module} has no floor"));
        for used in text.split("crate::").skip(1) {
            let name: String = used
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            let Some(theirs) = floor(&name) else {
                panic!(
                    "{}: crate::{name} is no module of the floors",
                    path.display()
                );
            };
            let same = *module == name || name == "error";
            let allowed = same || theirs < own;
            assert!(
                allowed,
                "{}: {module} must not import {name}",
                path.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 80, "{checked} imports were checked");
}

#[test]
fn client_and_sandbox_share_no_reading_of_the_service() {
    // A tree is read by serde_json, and the client reads nothing of the service's so.
    let allowed = ["dimension", "error", "secret", "time", "tree", "sandbox"];
    for (module, path, text) in sources() {
        if module == "sandbox" {
            for used in text.split("crate::").skip(1) {
                let fits = allowed.iter().any(|name| used.starts_with(name));
                assert!(fits, "{}: crate::{:.20}", path.display(), used);
            }
        }
    }
}

#[test]
fn core_and_engine_hold_no_binding_code() {
    for (_, path, text) in sources().into_iter().chain(sources_of("engine")) {
        for word in ["pyo3", "wasm_bindgen", "wasm-bindgen", "js_sys", "js-sys"] {
            assert!(!text.contains(word), "{} names {word}", path.display());
        }
    }
}

#[test]
fn the_engine_knows_nothing_of_the_service_and_is_unsafe_in_one_place() {
    let mut unsafe_blocks = 0;
    for (module, path, text) in sources_of("engine") {
        for word in ["tallyfold::", "chrono", "http", "serde"] {
            assert!(!text.contains(word), "{} names {word}", path.display());
        }
        let blocks = text.matches("unsafe {").count();
        assert!(blocks == 0 || module == "simd", "{}", path.display());
        unsafe_blocks += blocks;
    }
    assert_eq!(unsafe_blocks, 2);
}
