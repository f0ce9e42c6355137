import type { Json } from '../objects/canonical-json.js';
import { mapTexts } from '../objects/map-texts.js';
import { MASK } from './mark.js';
import { withoutNamedValues } from './named-values.js';
import { withoutPublishedForms } from './published-rules.js';
import { withoutForms } from './secret-forms.js';
import { isSecretFlag, isSecretName } from './secret-names.js';

/**
 * A text without secrets: keys and tokens of known forms, private keys, credentials in headers,
 * addresses and command lines, and values behind names that say that they are secret. Such a value
 * goes as a whole, be it
 * a list, an object or a block of YAML. One that nothing closes goes to the end of its line or
 * text, so that a text that was cut off shows nothing of it. What is masked once stays as it is.
 * Mask before you cut: half a
 * key has no form.
 */
export function withoutSecrets(text: string): string {
  return withoutNamedValues(withoutPublishedForms(withoutForms(text)));
}

/** Whether a value holds any text or number. */
function holdsAny(value: Json): boolean {
  if (Array.isArray(value)) return value.some(holdsAny);
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return typeof value === 'string' || typeof value === 'number';
}

const hidden = (value: Json): Json => (holdsAny(value) ? MASK : value);

type Members = Readonly<Record<string, Json>>;

/**
 * Members whose values are secrets because of another member: `{"name": "PASSWORD", "value": "…"}`,
 * and an object of Kubernetes of kind Secret.
 */
function secretMembers(members: Members): readonly string[] {
  const isNamed = ['name', 'Name', 'key', 'Key', 'variable'].some((one) => {
    const name = Object.hasOwn(members, one) ? members[one] : undefined;
    return typeof name === 'string' && isSecretName(name);
  });
  return [...(isNamed ? ['value', 'Value', 'val'] : []), ...(members.kind === 'Secret' ? ['data', 'stringData'] : [])];
}

/** The elements of a list; one behind the flag of a secret, such as `--password`, is a secret. */
function withoutListed(list: readonly Json[], hide: (value: Json) => Json): Json {
  return list.map((one, i) => {
    const before = list[i - 1];
    const isFlagged =
      typeof one === 'string' && !one.startsWith('-') && typeof before === 'string' && isSecretFlag(before);
    return isFlagged ? MASK : hide(one);
  });
}

/** A value without secrets, in any of its texts, and under any name that says that it holds one. */
export function withoutSecretValues(value: Json): Json {
  const hide = (one: Json): Json => {
    if (Array.isArray(one)) return withoutListed(one, hide);
    if (typeof one !== 'object' || one === null) return one;
    const secret = secretMembers(one as Members);
    return Object.fromEntries(
      Object.entries(one).map(([key, held]) => [
        key,
        secret.includes(key) || isSecretName(key) ? hidden(held) : hide(held),
      ]),
    );
  };
  return mapTexts(hide(value), withoutSecrets);
}
