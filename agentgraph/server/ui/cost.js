// Tokens by model, `{ model: [input, output] }`, and what they cost where the server knows prices.

import { prices } from "./api.js";
import { number } from "./dom.js";

let known = {};
/** Reads the prices once; until then costs are tokens alone. */
export async function learnPrices() {
  known = await prices();
}

export function addTo(sum, tokens) {
  for (const [model, [input, output]] of Object.entries(tokens ?? {})) {
    const [before, after] = sum[model] ?? [0, 0];
    sum[model] = [before + (input ?? 0), after + (output ?? 0)];
  }
  return sum;
}

export const sumOf = (all) => all.reduce(addTo, {});

const dollars = new Intl.NumberFormat("en", { style: "currency", currency: "USD", maximumSignificantDigits: 3 });

/** The money for tokens; null if the price of one of their models is not known. */
function money(tokens) {
  let sum = 0;
  for (const [model, [input, output]] of Object.entries(tokens)) {
    if (!known[model]) return null;
    sum += (input * known[model][0] + output * known[model][1]) / 1e6;
  }
  return sum;
}

/** `1,200 tokens in, 80 out · $0.0048`; an empty text for no tokens. */
export function costText(tokens) {
  const all = Object.values(tokens ?? {});
  if (!all.length) return "";
  const [input, output] = [0, 1].map((at) => all.reduce((sum, one) => sum + one[at], 0));
  const price = money(tokens);
  return `${number(input)} tokens in, ${number(output)} out${price === null ? "" : ` · ${dollars.format(price)}`}`;
}
