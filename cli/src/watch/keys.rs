//! What keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::{Mode, State};

/// What the event loop has to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Draw again.
    Draw,
    /// Read what may have changed, now.
    Read,
    /// End.
    Quit,
    /// End as Ctrl-C does.
    Interrupt,
    /// Give the terminal back to the shell until it lets the process go on.
    Suspend,
}

/// How many rows a page key moves.
const PAGE: isize = 10;

/// The longest text of the filter.
const LONGEST_FILTER: usize = 100;

/// Takes a key.
pub(crate) fn press(state: &mut State, key: KeyEvent) -> Action {
    if key.kind == KeyEventKind::Release {
        return Action::Draw;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Action::Interrupt,
            KeyCode::Char('z') => Action::Suspend,
            _ => Action::Draw,
        };
    }
    match state.mode {
        Mode::Rows => command(state, key.code),
        Mode::Filter => {
            edit(state, key.code);
            Action::Draw
        }
        Mode::Help => {
            state.mode = Mode::Rows;
            Action::Draw
        }
    }
}

fn command(state: &mut State, key: KeyCode) -> Action {
    match key {
        KeyCode::Char('q') => return Action::Quit,
        KeyCode::Char('r') => return Action::Read,
        KeyCode::Down | KeyCode::Char('j') => state.step(1),
        KeyCode::Up | KeyCode::Char('k') => state.step(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => state.step(PAGE),
        KeyCode::PageUp => state.step(-PAGE),
        KeyCode::Home | KeyCode::Char('g') => state.step(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => state.step(isize::MAX),
        KeyCode::Char('s') => state.order = state.order.next(),
        KeyCode::Char('c') => state.next_cluster(),
        KeyCode::Char('/') => state.mode = Mode::Filter,
        KeyCode::Char('?' | 'h') => state.mode = Mode::Help,
        KeyCode::Esc => state.filter.clear(),
        _ => {}
    }
    Action::Draw
}

fn edit(state: &mut State, key: KeyCode) {
    match key {
        KeyCode::Enter => state.mode = Mode::Rows,
        KeyCode::Esc => {
            state.filter.clear();
            state.mode = Mode::Rows;
        }
        KeyCode::Backspace => {
            state.filter.pop();
        }
        KeyCode::Char(letter)
            if !letter.is_control() && state.filter.chars().count() < LONGEST_FILTER =>
        {
            state.filter.push(letter);
        }
        _ => {}
    }
}
