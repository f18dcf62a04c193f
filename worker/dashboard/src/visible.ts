// Shows the characters that change the direction of text. A stored name or a text of
// a provider could otherwise read as another one, and reorder what follows it.
import { options, type VNode } from "preact";

const hidden = /[\u202a-\u202e\u2066-\u2069]/g;

// visible returns a text with those characters as their code points: "[U+202E]".
export const visible = (text: string) =>
  text.replace(hidden, (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase()}]`);

// attributes are those that the browser or a screen reader shows as text.
const attributes = ["title", "aria-label", "placeholder", "alt", "label", "data-label"];

// showHidden makes every text of the page visible in that sense. Values of inputs stay
// as they are.
export function showHidden() {
  const before = options.vnode;
  options.vnode = (vnode: VNode) => {
    before?.(vnode);
    const of = vnode as unknown as { type: unknown; props: unknown };
    // The props of a text node are its text.
    if (typeof of.props === "string") of.props = visible(of.props);
    else if (typeof of.type === "string") {
      const props = of.props as Record<string, unknown>;
      for (const name of attributes) {
        const value = props[name];
        if (typeof value === "string") props[name] = visible(value);
      }
    }
  };
}
