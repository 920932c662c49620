// Renders a hook in a page without a browser, and lets a test wait for what it shows. The server is at argv[2].
import { Window } from "happy-dom";

export const url = process.argv[2];
const { fetch } = globalThis;
const page = new Window({ url });
Object.assign(globalThis, { window: page, document: page.document, fetch });
Object.defineProperty(globalThis, "navigator", { value: page.navigator, configurable: true });
const { createElement, useEffect, useState } = await import("react");
const { createRoot } = await import("react-dom/client");

// With `followsThread`, the page gives the id of a new thread back to the hook, as one does that has it in its address.
export function pageOf(useHook, { followsThread, ...options }) {
  const waiting = new Set();
  const shown = { stream: undefined };
  const root = createRoot(document.body.appendChild(document.createElement("div")));
  const Page = () => {
    const [threadId, onThreadId] = useState(options.threadId ?? null);
    const stream = useHook({ apiUrl: url, ...options, ...(followsThread && { threadId, onThreadId }) });
    // The classic hook asks for the modes of what a page shows.
    void [stream.values, stream.messages, stream.interrupt];
    useEffect(() => {
      shown.stream = stream;
      for (const check of [...waiting]) check();
    });
    return null;
  };
  root.render(createElement(Page));
  return {
    get stream() {
      return shown.stream;
    },
    until(what, holds) {
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          const { values, messages, interrupts, isLoading, error } = shown.stream ?? {};
          reject(new Error(`${what}: ${JSON.stringify({ values, messages, interrupts, isLoading, error: String(error) })}`));
        }, 30_000);
        const check = () => {
          if (!shown.stream || !holds(shown.stream)) return;
          waiting.delete(check);
          clearTimeout(late);
          resolve();
        };
        waiting.add(check);
        check();
      });
    },
    close: () => root.unmount(),
  };
}
