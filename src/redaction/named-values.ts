import { MASK } from './mark.js';
import { SECRET_FLAG, SECRET_NAME } from './secret-names.js';
import { valueRange } from './value-range.js';

/**
 * A text that leads to a value, which stands directly behind it; the group `name` begins at the
 * name.
 */
const ASSIGNED = String.raw`(?<![\w.-])${SECRET_NAME}\\*["']?\s{0,8}(?:[:=]{1,3}>?)`;
/**
 * `"name": "PASSWORD", "value": "…"`, as lists of settings and variables have it, also in YAML and
 * XML.
 */
const PAIRED =
  String.raw`(?<![\w.-])(?:name|key|variable)\\*["']?\s{0,8}[:=]\s{0,8}\\*["']?${SECRET_NAME}\\*["']?` +
  String.raw`(?:[\s,;]|\\[nrt]){1,64}\\*["']?(?:value|val)\\*["']?\s{0,8}[:=]`;
/** `--password …` of a command line, and `"--password", "…"` of its list. */
const FLAG = String.raw`(?<![\w-])${SECRET_FLAG}(?:\s{1,8}(?!-)|\\*["']\s{0,8},\s{0,8}(?=\\*["']))`;
/** `ENV PASSWORD …` of a recipe of an image. */
const RECIPE = String.raw`(?:^|\n|\\n)\s{0,8}(?:ENV|setenv)\s{1,8}${SECRET_NAME}\s{1,8}`;
/** `<password>…</password>` */
const ELEMENT = String.raw`<${SECRET_NAME}(?:\s[^<>]{0,200})?>(?=[^<]{1,4096}</)`;

const LEADS = new RegExp([PAIRED, ELEMENT, FLAG, RECIPE, ASSIGNED].map((lead) => `(?:${lead})`).join('|'), 'gi');

/**
 * Members of an object of Kubernetes whose fields are secrets by the object's kind, not by their
 * names.
 */
const SECRET_KIND = /(?:^|\n|\\n)kind:[^\S\n]{0,8}Secret(?![\w.-])/;
const SECRET_DATA = /(?<=^|\n|\\n)(?:data|stringData):/g;

/** A text with the values masked that stand behind what leads to them. */
function withoutValues(text: string, leads: RegExp): string {
  const pieces: string[] = [];
  let done = 0;
  for (const { 0: lead, index } of text.matchAll(leads)) {
    // Within a value that is masked.
    if (index < done) continue;
    const at = index + lead.length;
    if (lead.startsWith('<')) {
      const end = text.indexOf('<', at);
      pieces.push(text.slice(done, at), MASK);
      done = end;
      continue;
    }
    const range = valueRange(text, at, { from: index, text: lead, isColon: lead.endsWith(':') });
    if (range === undefined) continue;
    pieces.push(text.slice(done, range.from), range.shown);
    done = range.end;
  }
  return pieces.join('') + text.slice(done);
}

/**
 * A text with the values masked that stand behind names of secrets: lists, objects and blocks of
 * YAML as a whole.
 */
export function withoutNamedValues(text: string): string {
  const left = withoutValues(text, LEADS);
  return SECRET_KIND.test(left) ? withoutValues(left, SECRET_DATA) : left;
}
