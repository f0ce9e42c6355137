import type { Command, Option } from 'commander';
import type { FindHiddenTexts, HiddenTexts } from '../history/rebuild/hidden-texts.js';
import type { CountTexts } from '../history/rebuild/tokenizer.js';
import type { LogLevel } from '../host/log.js';
import type { HttpContract } from '../http/http-contract.js';
import type { ReviewFlags } from './review/answer.js';
import type { ReviewedSession } from './review/session-answer.js';

/** The facts about the running program that contracts need. */
export interface ProgramParts {
  readonly version: string;
  /** The folder of package.json. Its subfolder `dist/` has the built program. */
  readonly home: URL;
  readonly contracts: readonly Contract[];
}

/** The result of an export or import: text for people and JSON for programs. */
export interface Written {
  readonly lines: readonly string[];
  readonly json: object;
}

/** A session to export, its destination, and the values of the formats' flags. */
export interface ExportTarget extends ReviewedSession {
  readonly folder: string;
  readonly flags: Readonly<Record<string, unknown>>;
  readonly home: URL;
  /** Finds the texts that a session's redaction rules hide. */
  readonly hiddenTexts: FindHiddenTexts;
  /** The formats that apply redaction rules. An error of another format names them. */
  readonly applyRules: readonly string[];
}

/** An export format. Its module is loaded when it is used, while the database opens. */
export interface ContractExport {
  readonly about: string;
  /** Flags for this format. Formats that share a flag must describe it alike. */
  readonly options?: () => readonly Option[];
  /** A flag that selects this format. Its value is the destination. */
  readonly fileFlag?: () => Option;
  /** Whether the format writes a folder instead of a file. */
  readonly writesFolder?: boolean;
  /** Whether the format hides the texts that a session's redaction rules name. */
  readonly appliesRules?: boolean;
  load(): Promise<(target: ExportTarget) => Promise<Written>>;
}

/** A file or folder to import, and the command's flags. */
export interface ImportSource {
  readonly file: string;
  readonly flags: Readonly<Record<string, unknown>> & { readonly data?: string };
}

/** An import format. Its module is loaded when it is used. */
export interface ContractImport {
  readonly about: string;
  /** Flags for this format only. */
  readonly options: () => readonly Option[];
  /**
   * Whether a file or folder looks like this format. A format without this function takes files
   * that no other format recognises.
   */
  recognises?(path: string): Promise<boolean>;
  run(source: ImportSource, contracts: readonly Contract[]): Promise<Written>;
  /** Finishes an interrupted import of a session. The file is not needed. */
  finish?(session: string, flags: ImportSource['flags']): Promise<Written>;
}

/** Prints the answer of a report command in a contract's format. */
type ReportAction = (reference: string, flags: ReviewFlags, count: CountTexts) => Promise<void>;

/** A format of `report list` and `report detail`. */
export interface ContractReports {
  /** The value of `--format`. */
  readonly format: string;
  /** The text about this value in the help of `--format`. */
  readonly about: string;
  load(): Promise<{ readonly list: ReportAction; readonly detail: ReportAction }>;
  /** More commands below `report`. */
  readonly commands?: () => readonly Command[];
}

/** Flags for showing a session to a person. */
export interface ShowFlags {
  readonly data?: string;
  readonly mount?: readonly string[];
  readonly port: number;
  readonly logLevel: LogLevel;
  /** Whether to open the browser. */
  readonly open: boolean;
}

/**
 * The contract with another program or with a person: everything that it adds to our interfaces.
 * The value itself is small, and its parts are loaded when they are used.
 */
export interface Contract {
  /** The contract's HTTP interface. It is loaded when a server starts. */
  readonly http?: (program: ProgramParts) => Promise<HttpContract>;
  /** The commands that the contract adds. */
  readonly commands?: (program: ProgramParts) => readonly Command[];
  /**
   * Shows a session, or the list of sessions, to a person. Resolves when the process should end.
   */
  readonly show?: (session: string | undefined, flags: ShowFlags, program: ProgramParts) => Promise<void>;
  /** Formats of `export` by name. */
  readonly exports?: Readonly<Record<string, ContractExport>>;
  /** Formats of `import` by name. */
  readonly imports?: Readonly<Record<string, ContractImport>>;
  readonly reports?: ContractReports;
  /** Loads the function that finds the texts hidden by redaction rules. */
  readonly hiddenTexts?: () => Promise<FindHiddenTexts>;
}

/**
 * Returns a function that finds the texts hidden by any contract. The contracts' parts are loaded
 * with the first search.
 */
export function hiddenBy(contracts: readonly Contract[]): FindHiddenTexts {
  return async (timeline, session) => {
    const found = await Promise.all(
      contracts.map(async ({ hiddenTexts }) => (await hiddenTexts?.())?.(timeline, session)),
    );
    return all(found.filter((one) => one !== undefined));
  };
}

function all(found: readonly HiddenTexts[]): HiddenTexts {
  const sum = (of: (one: HiddenTexts) => number): number => found.reduce((total, one) => total + of(one), 0);
  return {
    rules: sum(({ rules }) => rules),
    inForce: sum(({ inForce }) => inForce),
    unresolved: sum(({ unresolved }) => unresolved),
    texts: found.flatMap(({ texts }) => texts),
    words: found.flatMap(({ words }) => words),
    objects: new Set(found.flatMap(({ objects }) => [...objects])),
  };
}

/** Loads those parts of contracts that a server needs. */
export async function servedContracts(
  program: ProgramParts,
): Promise<{ readonly contracts: readonly HttpContract[]; readonly hiddenTexts: FindHiddenTexts }> {
  const loaded = await Promise.all(program.contracts.map(({ http }) => http?.(program)));
  return { contracts: loaded.filter((one) => one !== undefined), hiddenTexts: hiddenBy(program.contracts) };
}
