import type { Json } from '../../objects/canonical-json.js';
import { CodedError } from '../../values/coded-error.js';
import { ownMember } from '../../values/own-member.js';
import { BUNDLE_PARTS, type Bundle, type BundlePart, objectsOf, PART_NAMES } from './bundle-parts.js';
import { SHAPES } from './shapes.js';
import { statusFindings } from './status-scan.js';

/**
 * Why a bundle or its target folder is rejected.
 *
 * - `invalid-bundle`: an object has the wrong shape, names a missing object, or states the status
 *   of a turn or call; nothing is written
 * - `folder-in-use`: the folder holds other files or another bundle
 * - `not-a-folder`: the path, or its parent, is not a directory (a file or a symbolic link)
 */
export type AgentContextErrorCode = 'invalid-bundle' | 'folder-in-use' | 'not-a-folder';

/**
 * Thrown when a bundle cannot be made or written. Callers branch on `code`. Nothing was changed.
 */
export class AgentContextError extends CodedError<AgentContextErrorCode> {
  override readonly name = 'AgentContextError';
}

/**
 * Maps each field that refers to an object to the part that holds the object. Other fields refer to
 * nothing in the bundle.
 */
const REFERENCES: Readonly<Record<string, BundlePart>> = {
  surface_refs: 'surfaces',
  surface_id: 'surfaces',
  item_ref: 'items',
  item_refs: 'items',
  available_item_refs: 'items',
  candidate_item_refs: 'items',
  selected_item_refs: 'items',
  source_item_refs: 'items',
  user_pin: 'items',
  replaced: 'items',
  shortened: 'items',
  resolution_refs: 'items',
  source_ref: 'sources',
  source_refs: 'sources',
  available_source_refs: 'sources',
  selection_refs: 'selections',
  budget_ref: 'budgets',
  assembly_id: 'assemblies',
  assembly_refs: 'assemblies',
  injection_refs: 'injections',
  compaction_refs: 'compactions',
  summary_ref: 'summaries',
  missing_context_refs: 'missing',
  context_id: 'envelope',
};
/** Fields whose references are not checked: they hold foreign data or an item's text. */
const NOT_FOLLOWED: ReadonlySet<string> = new Set(['content', 'metadata', 'data', 'evidence_refs', 'policy_refs']);

/** Returns the references in a value that do not resolve. */
function openReferences(value: unknown, names: ReadonlyMap<BundlePart, ReadonlySet<string>>): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((one) => openReferences(one, names));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => {
    if (NOT_FOLLOWED.has(key)) return [];
    const part = ownMember(REFERENCES, key);
    if (part === undefined) return openReferences(one, names);
    const named = (Array.isArray(one) ? one : [one]).filter((name) => typeof name === 'string');
    return named
      .filter((name) => names.get(part)?.has(name) !== true)
      .map((name) => `${key} names ${JSON.stringify(name)}, which is not among the ${part}`);
  });
}

/**
 * Returns the faults of a bundle as sentences that name the object. Faults are wrong shapes,
 * duplicate ids, unresolved references and runtime statuses.
 */
export function bundleFindings(bundle: Bundle): readonly string[] {
  const findings: string[] = [];
  const names = new Map<BundlePart, Set<string>>();
  for (const part of PART_NAMES) {
    const { key, shape } = BUNDLE_PARTS[part];
    const own = new Set<string>();
    names.set(part, own);
    for (const one of objectsOf(bundle, part)) {
      const name = String((one as Readonly<Record<string, unknown>>)[key]);
      if (own.has(name)) findings.push(`two ${part} have the name ${JSON.stringify(name)}`);
      own.add(name);
      const read = SHAPES[shape].safeParse(one);
      const [issue] = read.error?.issues ?? [];
      if (issue !== undefined)
        findings.push(
          `${shape} ${name} is not valid at ${issue.path.map(String).join('.') || 'its top level'}: ${issue.message}`,
        );
    }
  }
  for (const part of PART_NAMES) {
    const { key, shape } = BUNDLE_PARTS[part];
    for (const one of objectsOf(bundle, part)) {
      const name = String((one as Readonly<Record<string, unknown>>)[key]);
      for (const open of openReferences(one, names)) findings.push(`${shape} ${name}: ${open}`);
      // `status` of a missing-context question is the question's own state, not a runtime status.
      const own = part === 'missing' ? ['status'] : [];
      for (const path of statusFindings(one as Json, own))
        findings.push(`${shape} ${name} states a runtime status at ${path}`);
    }
  }
  return findings;
}

/** @throws {AgentContextError} `invalid-bundle` */
export function checkBundle(bundle: Bundle): void {
  const findings = bundleFindings(bundle);
  if (findings.length === 0) return;
  const more = findings.length > 1 ? `, and ${findings.length - 1} more` : '';
  throw new AgentContextError(
    'invalid-bundle',
    `the context cannot be written as Agent Context: ${findings[0]}${more}`,
  );
}
