//! `xtask INPUT.wasm OUT_DIR` writes the JavaScript glue and its types for the npm package.
//!
//! It is `wasm-bindgen --target web` as a library, so that its version cannot differ from the
//! crate's: both are pinned in one place, the workspace manifest. The glue becomes a function that makes an
//! instance's own copy of it, because an instance that has trapped is replaced: its objects must never reach
//! the memory of the next one.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(input), Some(out_dir), None) = (args.next(), args.next(), args.next()) else {
        return Err("usage: xtask INPUT.wasm OUT_DIR".into());
    };
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(&input)
        .web(true)?
        .typescript(true)
        // The facade hands over the module's bytes, so no host ever has to find a file.
        .omit_default_module_path(true)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(&out_dir)?;
    let name = bindgen.stem()?;
    let script = out_dir.join(format!("{name}.js"));
    fs::write(&script, per_instance(&fs::read_to_string(&script)?)?)?;
    let types = out_dir.join(format!("{name}.d.ts"));
    let declared = fs::read_to_string(&types)?;
    Ok(fs::write(&types, declared + &per_instance_types(name))?)
}

/// Where the part of the glue begins that starts an instance, which the facade does by itself.
const START: &str = "let wasmModule, wasmInstance, wasm;\n";

/// What the glue does about an object of another class.
const WRONG_CLASS: &str = "throw new Error(`expected instance of ${klass.name}`);";

/// The glue as a function that gives what an instance needs: its imports, what it exports, and how it is told which
/// instance to use.
fn per_instance(glue: &str) -> Result<String, Box<dyn Error>> {
    let (glue, _) = glue.split_once(START).ok_or("the glue starts otherwise")?;
    let mut exported = Vec::new();
    let mut views = String::new();
    let mut body = String::new();
    for line in glue.lines() {
        let line = match line.strip_prefix("export ") {
            Some(own) => {
                let name = own
                    .split([' ', '('])
                    .nth(1)
                    .ok_or("an export has no name")?;
                exported.push(name);
                own
            }
            None => line,
        };
        if let Some(view) = line.strip_prefix("let cached")
            && let Some(name) = view.strip_suffix(" = null;")
        {
            views += &format!("cached{name} = ");
        }
        // The facade hands over nothing else than an object of the class, which may be that of another instance.
        body += &line.replace(WRONG_CLASS, "throw lost();");
        body.push('\n');
    }
    if exported.is_empty() || views.is_empty() {
        return Err("the glue has other exports or views than expected".into());
    }
    Ok(format!(
        "export function glue(lost) {{\n{body}
let wasm;
return {{
    imports: __wbg_get_imports(),
    use(exports) {{
        wasm = exports;
        {views}null;
    }},
    {},
}};\n}}\n",
        exported.join(", ")
    ))
}

fn per_instance_types(name: &str) -> String {
    format!(
        "
/** The glue of one instance: whose exports it is to use, and all of the above. */
export interface Glue extends Readonly<Omit<typeof import(\"./{name}.js\"), \"glue\" | \"default\" | \"initSync\">> {{
    readonly imports: WebAssembly.Imports;
    use(exports: object): void;
}}

/** The glue of a new instance. Makes the error about an object of another one. */
export function glue(lost: () => Error): Glue;
"
    )
}
