// Draws a view as SVG: boxes, lines and text, at the positions and in the colours that the browser shows.

const SVG = "http://www.w3.org/2000/svg";
/** Pictures leave out controls, details that can be opened, and invisible elements. */
const LEFT_OUT = ".tools, .sr, .more, .editor, .row, button.when, .ink, button.plain, [hidden]";
const SIDES = ["Top", "Right", "Bottom", "Left"] as const;

/** Returns the picture of an element as the text of an SVG file. */
export function pictureOf(element: Element): string {
  return new Picture(element).text();
}

class Picture {
  readonly #svg = document.createElementNS(SVG, "svg");
  readonly #defs = document.createElementNS(SVG, "defs");
  readonly #pen: CanvasRenderingContext2D;
  readonly #colors = new Map<string, string | undefined>();
  readonly #patterns = new Map<string, string>();
  readonly #origin: DOMRect;
  #clips = 0;

  constructor(element: Element) {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    this.#pen = canvas.getContext("2d", { willReadFrequently: true }) as CanvasRenderingContext2D;
    this.#origin = element.getBoundingClientRect();
    const { width, height } = this.#origin;
    put(this.#svg, { width, height, viewBox: `0 0 ${width} ${height}` });
    this.#svg.append(this.#defs);
    this.#draw(element, this.#svg);
  }

  text(): string {
    return new XMLSerializer().serializeToString(this.#svg);
  }

  #draw(element: Element, parent: Element): void {
    if (element.matches(LEFT_OUT)) return;
    const style = getComputedStyle(element);
    if (style.display === "none" || style.visibility === "hidden") return;
    const place = this.#placeOf(element.getBoundingClientRect());
    if (element instanceof SVGElement) {
      this.#drawing(element, place, parent);
      return;
    }
    if (element instanceof HTMLCanvasElement) {
      this.#add(parent, "image", { ...place, href: element.toDataURL() });
      return;
    }
    this.#box(style, place, parent);
    const isCut =
      style.overflowX !== "visible" &&
      (element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight);
    const inner = isCut ? this.#clipped(place, parent) : parent;
    for (const child of element.childNodes) {
      if (child instanceof Element) this.#draw(child, inner);
      else if (child instanceof Text) this.#write(child, style, inner);
    }
  }

  /** Where a box is in the picture. */
  #placeOf({ left, top, width, height }: DOMRect) {
    return { x: round(left - this.#origin.left), y: round(top - this.#origin.top), width, height };
  }

  #add(parent: Element, name: string, attributes: Attributes): Element {
    const made = put(document.createElementNS(SVG, name), attributes);
    parent.append(made);
    return made;
  }

  /** Draws the background and the borders of a box. */
  #box(style: CSSStyleDeclaration, place: Box, parent: Element): void {
    const { x, y, width, height } = place;
    if (width === 0 || height === 0) return;
    const radius = { rx: Number.parseFloat(style.borderTopLeftRadius) || undefined };
    const [top = 0, right = 0, bottom = 0, left = 0] = SIDES.map((side) =>
      Number.parseFloat(style[`border${side}Width`]),
    );
    // With this clip, borders only keep boxes apart, so they are not drawn.
    const isGap = style.backgroundClip === "padding-box";
    const filled = isGap
      ? { x: x + left, y: y + top, width: width - left - right, height: height - top - bottom }
      : place;
    for (const fill of [this.#color(style.backgroundColor), this.#pattern(style.backgroundImage)]) {
      if (fill) this.#add(parent, "rect", { ...filled, ...radius, fill });
    }
    const sides = SIDES.map((side, at) => ({
      side,
      width: [top, right, bottom, left][at] as number,
      look: style[`border${side}Style`],
      stroke: this.#color(style[`border${side}Color`]),
    })).filter((it) => it.width > 0 && it.look !== "none" && it.stroke);
    const [first] = sides;
    if (!first || isGap) return;
    if (radius.rx && sides.length === SIDES.length) {
      const half = first.width / 2;
      const inner = {
        x: x + half,
        y: y + half,
        width: width - 2 * half,
        height: height - 2 * half,
      };
      const line = { stroke: first.stroke, "stroke-width": first.width, fill: "none" };
      this.#add(parent, "rect", { ...inner, ...radius, ...line });
      return;
    }
    for (const { side, width: thick, look, stroke } of sides) {
      const isRow = side === "Top" || side === "Bottom";
      const middle = side === "Right" ? x + width - thick / 2 : x + thick / 2;
      const level = side === "Bottom" ? y + height - thick / 2 : y + thick / 2;
      const d = isRow ? `M${x} ${level}h${width}` : `M${middle} ${y}v${height}`;
      const dashes = { dotted: `${thick} ${thick}`, dashed: `${3 * thick} ${2 * thick}` }[look];
      const line = { d, stroke, "stroke-width": thick, "stroke-dasharray": dashes };
      this.#add(parent, "path", line);
    }
  }

  /** A colour in a notation that every program supports; `undefined` if it is transparent. */
  #color(css: string): string | undefined {
    if (!this.#colors.has(css)) {
      this.#pen.clearRect(0, 0, 1, 1);
      this.#pen.fillStyle = css;
      this.#pen.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha = 0] = this.#pen.getImageData(0, 0, 1, 1).data;
      const text = `rgba(${red},${green},${blue},${round(alpha / 255)})`;
      this.#colors.set(css, alpha === 0 ? undefined : text);
    }
    return this.#colors.get(css);
  }

  /** The marks of provisional, incomplete and missing time. */
  #pattern(image: string): string | undefined {
    if (!image.includes("gradient(")) return undefined;
    const found = this.#patterns.get(image);
    if (found) return found;
    const colors = image.match(/(?:rgba?|color)\([^)]*\)/g) ?? [];
    const color = colors.map((css) => this.#color(css)).find((it) => it !== undefined);
    const id = `pattern${this.#patterns.size}`;
    const size = { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" };
    const pattern = this.#add(this.#defs, "pattern", size);
    if (image.startsWith("radial")) {
      this.#add(pattern, "circle", { cx: 3, cy: 3, r: 1, fill: color });
    } else {
      // Provisional time has lines in one direction, missing time in both.
      const d = image.includes("135deg") ? "M0 6 6 0" : "M0 6 6 0M0 0 6 6";
      this.#add(pattern, "path", { d, stroke: color, "stroke-width": 1 });
    }
    this.#patterns.set(image, `url(#${id})`);
    return this.#patterns.get(image);
  }

  #clipped(place: Box, parent: Element): Element {
    this.#clips += 1;
    const id = `clip${this.#clips}`;
    this.#add(this.#add(this.#defs, "clipPath", { id }), "rect", { ...place });
    return this.#add(parent, "g", { "clip-path": `url(#${id})` });
  }

  /** Copies an SVG of the page, with the colours from its styles. */
  #drawing(element: SVGElement, place: Box, parent: Element): void {
    const copy = put(element.cloneNode(true) as SVGElement, { ...place });
    const copies = [copy, ...copy.querySelectorAll("*")];
    for (const [at, own] of [element, ...element.querySelectorAll("*")].entries()) {
      const { fill, stroke, strokeWidth } = getComputedStyle(own);
      const [inside, line] = [fill, stroke].map((css) => (css === "none" ? css : this.#color(css)));
      const looks = { fill: inside ?? "none", stroke: line ?? "none", "stroke-width": strokeWidth };
      put(copies[at] as Element, looks);
    }
    parent.append(copy);
  }

  /** Writes text line by line, with the line breaks of the browser. */
  #write(node: Text, style: CSSStyleDeclaration, parent: Element): void {
    const size = Number.parseFloat(style.fontSize);
    if (size === 0 || node.data.trim() === "") return;
    this.#pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = this.#pen.measureText("x");
    const looks = {
      fill: this.#color(style.color),
      "font-family": style.fontFamily,
      "font-size": size,
      "font-weight": style.fontWeight === "400" ? undefined : style.fontWeight,
      "font-style": style.fontStyle === "normal" ? undefined : style.fontStyle,
    };
    for (const { text, box } of linesOf(node)) {
      const { x, y, width, height } = this.#placeOf(box);
      const line = { x, y: round(y + (height - up - down) / 2 + up), textLength: round(width) };
      this.#add(parent, "text", { ...line, ...looks }).textContent = text;
    }
  }
}

type Attributes = { readonly [name: string]: string | number | undefined };
type Box = { x: number; y: number; width: number; height: number };

function put<E extends Element>(element: E, attributes: Attributes): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(name, String(value));
  }
  return element;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** The lines of a text, each with its box. */
function linesOf(node: Text): { text: string; box: DOMRect }[] {
  const range = document.createRange();
  const lines: { text: string; box: DOMRect }[] = [];
  for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
    range.setStart(node, index);
    range.setEnd(node, index + word.length);
    const box = range.getBoundingClientRect();
    const last = lines.at(-1);
    if (last && Math.abs(last.box.top - box.top) < 2) {
      last.text += ` ${word}`;
      last.box = union(last.box, box);
    } else lines.push({ text: word, box });
  }
  return lines;
}

function union(one: DOMRect, other: DOMRect): DOMRect {
  const left = Math.min(one.left, other.left);
  const right = Math.max(one.right, other.right);
  return new DOMRect(left, one.top, right - left, one.height);
}
