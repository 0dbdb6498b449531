//! The invariants of ARCHITECTURE.md that can be checked in the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use syn::visit::{self, Visit};

/// The modules of each crate, from the lowest layer up. A file imports only from its own module and
/// from lower layers. The files of the lowest layer may import each other.
const FLOORS: &[(&str, &[&[&str]])] = &[
    (
        "core",
        &[
            &["code", "spelling", "secret", "error", "checksum", "text"],
            &["arguments"],
            &["time"],
            &["wire"],
            &["counts"],
            &["access"],
            &["fold"],
            &["endpoint"],
            &["calls"],
            &["sending"],
            &["keeper"],
            &["ranges"],
            &["pages"],
        ],
    ),
    (
        "health",
        &[
            &["measure", "pairs", "shown", "stats"],
            &["columns"],
            &["detection", "usual"],
            &["cause"],
            &["rules"],
            &["incidents"],
            &["check"],
            &["alerts"],
        ],
    ),
    (
        "export",
        &[
            &["escape", "note", "sample", "source"],
            &["context"],
            &["form"],
            &["formats"],
            &["options"],
            &["walk", "piece"],
            &["scrape"],
            &["export"],
            &["position"],
            &["ledger", "outbox"],
        ],
    ),
    (
        "cli",
        &[
            &["failure", "stderr", "files"],
            &["arguments"],
            &["config"],
            &["host"],
            &["output"],
            &["app"],
            &["health"],
            &["doctor", "watch"],
            &["commands"],
        ],
    ),
];

const CRATES: [&str; 9] = [
    "cli",
    "core",
    "engine",
    "export",
    "grades",
    "health",
    "sandbox",
    "bindings-wasm",
    "bindings-python",
];

/// A source file of a crate.
struct Source {
    /// Its path below `src`, as modules: `["counts", "table"]`, or `["counts"]` for
    /// `counts/mod.rs`.
    module: Vec<String>,
    text: String,
    /// The modules that it names, each as a path from the root of the crate.
    named: BTreeSet<Vec<String>>,
    syntax: syn::File,
}

impl Source {
    fn read(root: &Path, path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("UTF-8");
        let syntax = syn::parse_file(&text).expect("Rust");
        let inside = path.strip_prefix(root).expect("below src").with_extension("");
        let mut module: Vec<String> =
            inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let is_mod_rs = module.last().is_some_and(|last| last == "mod");
        if is_mod_rs || module == ["lib"] {
            module.pop();
        }
        let mut names = Names { module: &module, depth: 0, named: BTreeSet::new() };
        names.visit_file(&syntax);
        Self { named: names.named, module, text, syntax }
    }

    fn name(&self) -> String {
        self.module.join("/")
    }

    fn room(&self) -> &str {
        self.module.first().map_or("lib", String::as_str)
    }
}

/// Collects the paths of the modules that a file names, except in its tests.
struct Names<'a> {
    module: &'a [String],
    /// The number of inline modules around the current item.
    depth: usize,
    named: BTreeSet<Vec<String>>,
}

impl Names<'_> {
    fn take(&mut self, path: &[String]) {
        let mut inner = self.module.to_vec();
        let rest = match path.first().map(String::as_str) {
            Some("crate") => {
                inner.clear();
                &path[1..]
            }
            Some("super") => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                // An inline module's `super` is the file itself.
                for _ in self.depth..ups {
                    inner.pop();
                }
                &path[ups..]
            }
            _ => return,
        };
        inner.extend_from_slice(rest);
        self.named.insert(inner);
    }

    fn take_tree(&mut self, tree: &syn::UseTree, before: &[String]) {
        let mut path = before.to_vec();
        match tree {
            syn::UseTree::Path(inner) => {
                path.push(inner.ident.to_string());
                self.take_tree(&inner.tree, &path);
            }
            syn::UseTree::Group(group) => {
                for item in &group.items {
                    self.take_tree(item, before);
                }
            }
            syn::UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.take(&path);
            }
            syn::UseTree::Rename(rename) => {
                path.push(rename.ident.to_string());
                self.take(&path);
            }
            syn::UseTree::Glob(_) => self.take(before),
        }
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.take_tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.take(&parts);
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            self.depth += 1;
            visit::visit_item_mod(self, item);
            self.depth -= 1;
        }
    }

    // The name of a macro is not an import, because the macros of this crate are at its root.
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
}

fn sources_of(crate_folder: &str) -> Vec<Source> {
    sources_if(crate_folder, |_| true)
}

/// Parses the files that `is_wanted`.
fn sources_if(crate_folder: &str, is_wanted: fn(&Path) -> bool) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(crate_folder).join("src");
    let mut folders = vec![root.clone()];
    let mut paths: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the source is there") {
            let path = entry.expect("a folder that can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    assert!(!paths.is_empty(), "the source was found");
    let wanted = paths.iter().filter(|path| is_wanted(path));
    wanted.map(|path| Source::read(&root, path)).collect()
}

/// The files that each file imports from, by name.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The imports of each crate. Parsing all files takes seconds.
static IMPORTS: LazyLock<BTreeMap<&str, Imports>> =
    LazyLock::new(|| CRATES.map(|folder| (folder, imports(&sources_of(folder)))).into());

/// The crate's root imports everything, so it is left out.
fn imports(sources: &[Source]) -> Imports {
    let files: BTreeSet<&[String]> = sources.iter().map(|source| &*source.module).collect();
    let file_of = |path: &[String]| {
        let mut prefixes = (1..=path.len()).rev().map(|end| &path[..end]);
        prefixes.find(|prefix| files.contains(prefix)).map(|file| file.join("/"))
    };
    let of = |source: &Source| {
        let files = source.named.iter().filter_map(|path| file_of(path));
        files.filter(|file| *file != source.name()).collect()
    };
    let inner = sources.iter().filter(|source| !source.module.is_empty());
    inner.map(|source| (source.name(), of(source))).collect()
}

/// An import cycle, if there is one.
fn circle(imports: &Imports) -> Option<Vec<String>> {
    fn visit<'a>(
        imports: &'a Imports,
        file: &'a str,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|other| *other == file) {
            return Some(way[start..].iter().map(|file| (*file).to_owned()).collect());
        }
        if done.contains(file) {
            return None;
        }
        way.push(file);
        let found = imports[file].iter().find_map(|next| visit(imports, next, way, done));
        way.pop();
        done.insert(file);
        found
    }
    let (mut way, mut done) = (Vec::new(), BTreeSet::new());
    let mut files = imports.keys();
    files.find_map(|file| visit(imports, file, &mut way, &mut done))
}

#[test]
fn imports_go_down_the_floors() {
    for (folder, floors) in FLOORS {
        let floor = |room: &str| {
            let floor = floors.iter().position(|floor| floor.contains(&room));
            floor.unwrap_or_else(|| panic!("{folder}: {room} has no floor"))
        };
        let mut checked = 0;
        for (file, imported) in &IMPORTS[folder] {
            let room = file.split('/').next().expect("a room");
            for other in imported {
                let theirs = other.split('/').next().expect("a room");
                let allowed = theirs == room || floor(theirs) < floor(room) || floor(room) == 0;
                assert!(allowed, "{folder}: {file} must not import {other}");
                checked += 1;
            }
        }
        assert!(checked > 40, "{folder}: {checked} imports were checked");
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for folder in CRATES {
        let found = circle(&IMPORTS[folder]);
        assert_eq!(found, None, "a circle in {folder}");
    }
}

#[test]
fn a_room_lists_its_files_and_holds_nothing_else() {
    for folder in CRATES {
        for source in sources_if(folder, |path| path.ends_with("mod.rs")) {
            for item in &source.syntax.items {
                let lists = match item {
                    syn::Item::Mod(item) => item.content.is_none(),
                    syn::Item::Use(_) => true,
                    _ => false,
                };
                assert!(lists, "{folder}: {}/mod.rs", source.name());
            }
        }
    }
}

#[test]
fn the_sandbox_reads_the_service_reference_for_itself() {
    let allowed =
        ["Code", "Error", "Now", "Result", "Secret", "Spelling", "arguments", "names", "options"];
    for source in sources_of("sandbox") {
        for used in source.text.split("tallyfold::").skip(1) {
            let names = used
                .strip_prefix('{')
                .map_or(used, |group| group.split('}').next().expect("the end of a group"));
            let names =
                if used.starts_with('{') { names.split(',').collect() } else { vec![names] };
            for name in names {
                let name = name.trim();
                let fits = name.is_empty() || allowed.iter().any(|known| name.starts_with(known));
                assert!(fits, "sandbox/{}: tallyfold::{name:.20}", source.name());
            }
        }
    }
}

#[test]
fn core_engine_and_sandbox_hold_no_binding_code() {
    for folder in ["core", "engine", "sandbox"] {
        for source in sources_of(folder) {
            for word in ["pyo3", "wasm_bindgen", "js_sys"] {
                assert!(!source.text.contains(word), "{folder}/{} names {word}", source.name());
            }
        }
    }
}

#[test]
fn the_engine_knows_nothing_of_the_service_and_is_unsafe_in_one_place() {
    let mut unsafe_blocks = 0;
    for source in sources_of("engine") {
        for word in ["tallyfold::", "chrono", "http", "serde_json"] {
            let code = source.text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let names = code.into_iter().any(|line| line.contains(word));
            assert!(!names, "engine/{} names {word}", source.name());
        }
        let blocks = source.text.matches("unsafe {").count();
        assert!(blocks == 0 || source.room() == "simd", "engine/{}", source.name());
        unsafe_blocks += blocks;
    }
    assert_eq!(unsafe_blocks, 1);
}

#[test]
fn every_test_file_is_compiled() {
    for folder in ["cli", "core", "export", "health"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{folder}/tests"));
        let compiled = fs::read_to_string(root.join("integration.rs")).expect("the list of files");
        let mut checked = 0;
        for entry in fs::read_dir(&root).expect("the tests are there") {
            let path = entry.expect("a folder that can be read").path();
            let name = path.file_stem().expect("a name").to_string_lossy();
            if path.extension().is_some_and(|extension| extension == "rs") && name != "integration"
            {
                let listed = compiled.lines().any(|line| line == format!("mod {name};"));
                assert!(listed, "{folder}/tests/integration.rs lacks {name}");
                checked += 1;
            }
        }
        assert!(checked > 4, "{folder}: {checked} files were checked");
    }
}
