//! Dimension values by number.

use std::collections::HashMap;

/// The ids of an event's dimension values, in the order of [`crate::dimensions::NAMES`].
pub(crate) type Values = [u32; 4];

/// Every dimension value, numbered in order of first appearance.
#[derive(Default)]
pub(crate) struct Names {
    texts: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Names {
    pub(crate) fn id(&mut self, text: &str) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }

    pub(crate) fn text(&self, id: u32) -> &str {
        &self.texts[id as usize]
    }
}
