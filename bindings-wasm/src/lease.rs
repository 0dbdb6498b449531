//! [`tallyfold::keeper::Lease`].

use tallyfold::keeper::{self, Holder, Process};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::host::random_seed;

/// The lease of a directory, step by step.
#[wasm_bindgen(js_name = CoreLease)]
pub struct Lease(keeper::Lease);

#[wasm_bindgen(js_class = CoreLease)]
impl Lease {
    /// A lease that is not taken yet.
    #[wasm_bindgen(constructor)]
    pub fn new(host: &str, pid: u32, stat: Option<String>, thread: Option<u32>) -> Self {
        Self(keeper::Lease::new(Holder {
            host,
            pid,
            stat: stat.as_deref(),
            thread,
            seed: random_seed(),
        }))
    }

    /// The content of the file.
    pub fn text() -> String {
        keeper::Lease::TEXT.to_owned()
    }

    /// The message if the file of a held lease is gone.
    pub fn lost() -> String {
        keeper::Lease::LOST.to_owned()
    }

    /// How often to write the file, in milliseconds.
    #[wasm_bindgen(js_name = signOfLifeMs)]
    pub fn sign_of_life_ms() -> u32 {
        keeper::Lease::SIGN_OF_LIFE_MS
    }

    /// The name of the file.
    pub fn name(&self) -> String {
        self.0.name().to_owned()
    }

    /// What to do next, as a word and its argument.
    pub fn step(&self) -> Vec<String> {
        let (word, argument) = self.0.step().parts();
        vec![word.to_owned(), argument]
    }

    /// A file was created or removed, or a wait has ended.
    pub fn done(&mut self) {
        self.0.done();
    }

    /// Takes the names of all files in the directory.
    pub fn listed(&mut self, names: Vec<String>) {
        self.0.listed(names.iter().map(String::as_str));
    }

    /// Takes the modification time of the file, if it is there.
    pub fn modified(&mut self, unix_ms: Option<f64>) {
        self.0.modified(unix_ms.map(|ms| ms as i64));
    }

    /// Takes what is known about the process.
    pub fn process(&mut self, exists: Option<bool>, stat: Option<String>) {
        let stat = stat.as_deref();
        self.0.process(Process { exists, stat });
    }
}
