import type { EdnSymbol, EdnValue } from '../../edn/values.js';
import { ownMember } from '../../values/own-member.js';
import type { ParsedQuery } from './parse-query.js';
import { constantsOf, isVariable, symbolNames, tripleOf } from './query-terms.js';
import { attributeAsked, SSOT_ATTRIBUTES } from './ssot-attributes.js';

/** A triple on the top level of a query. */
interface TopTriple {
  readonly e: EdnValue;
  readonly a: string;
  readonly v: EdnValue | undefined;
}

/** Attributes that are null for a file that was only mentioned. */
const NULL_WHERE_UNREAD: ReadonlySet<string> = new Set(['content_hash', 'file_hash']);
/** Attributes that only files have. */
const OF_FILES: ReadonlySet<string> = new Set(['file_type', 'char_count']);

/** Attributes with these kinds of storage can be looked up for a list member. */
const LOOKED_UP: ReadonlySet<string> = new Set(['direct', 'shared', 'text']);

/** Returns the attribute that the database looks up. A content is compared by its hash. */
const storedName = (attribute: string): string => (attribute === 'content' ? 'content_hash' : attribute);

const isNamed = (term: EdnValue | undefined, name: string): boolean => isVariable(term) && term.name === name;

/** Finds the top-level clauses that bind the variables of a query. */
export class VariablePlaces {
  readonly #triples: readonly TopTriple[];
  readonly #given: ReadonlySet<string>;

  constructor({ where, in: bindings = [] }: ParsedQuery) {
    this.#given = new Set(symbolNames(bindings));
    this.#triples = where.flatMap((clause) => {
      const found = tripleOf(clause);
      return found === undefined ? [] : [{ ...found, a: attributeAsked(found.a) }];
    });
  }

  /**
   * Returns whether more than one clause or argument binds a variable. Look-ups of a list member do
   * not count.
   */
  isBoundTwice({ name }: EdnSymbol): boolean {
    const isEntity = this.#triples.some(({ e }) => isNamed(e, name));
    const values = this.#triples.filter(({ v }) => isNamed(v, name)).length;
    return this.#given.has(name) || values > 1 || (isEntity && !this.isMember({ name }));
  }

  /**
   * Returns whether another clause or an argument binds the variable that is the value of a list
   * member's attribute. If only look-ups of list members name the variable, the first look-up binds
   * it.
   */
  isBoundElsewhere({ name }: EdnSymbol, entity: EdnSymbol, attribute: string): boolean {
    if (this.#given.has(name)) return true;
    if (this.#triples.some(({ e }) => isNamed(e, name)) && !this.isMember({ name })) return true;
    const values = this.#triples.filter(({ v }) => isNamed(v, name));
    const isLookedUp = ({ e, a }: TopTriple): boolean =>
      isVariable(e) && this.isMember(e) && LOOKED_UP.has(ownMember(SSOT_ATTRIBUTES, a) ?? '');
    if (!values.every(isLookedUp)) return true;
    // A variable that the rewrite added has no other clause.
    const [first] = values;
    if (first === undefined) return false;
    return !isNamed(first.e, entity.name) || storedName(first.a) !== storedName(attribute);
  }

  /**
   * Returns whether a variable is a member of a list whose attributes are looked up one by one.
   * This holds for a list that heads store as one value, and for a folded list without a constant
   * that selects members.
   */
  isMember({ name }: Pick<EdnSymbol, 'name'>): boolean {
    if (this.#given.has(name)) return false;
    const [list, ...others] = this.#triples.filter(({ v }) => isNamed(v, name));
    if (list === undefined || others.length > 0 || !isVariable(list.e) || list.e.name === name) return false;
    const kept = ownMember(SSOT_ATTRIBUTES, list.a);
    if (kept === 'list') return true;
    return kept === 'folded' && this.#triples.every(({ e, v }) => !isNamed(e, name) || constantsOf(v) === undefined);
  }

  /**
   * Returns whether a clause joins files by a hash that is null for every mentioned file. If the
   * database took that clause first, it would compare each file with every object without a hash.
   */
  isJoinedFile({ name }: EdnSymbol, attribute: string, v: EdnValue | undefined): boolean {
    if (!NULL_WHERE_UNREAD.has(attribute) || !isVariable(v) || !this.isBoundTwice(v)) return false;
    return this.#triples.some(
      ({ e, a, v: value }) =>
        isNamed(e, name) && (OF_FILES.has(a) || (a === 'type' && constantsOf(value)?.join() === 'file')),
    );
  }
}
