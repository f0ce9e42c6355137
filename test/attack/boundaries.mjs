/**
 * Other suites that are attacks, as paths of `test/`, by target. Each of their tests counts as one
 * attempt.
 */
export const BOUNDARIES = {
  arguments: [
    'live/harness/hostile-arguments',
    'unit/objects/kept-args',
    'unit/client/delivery/write-record',
    'unit/tools/apply-edits',
  ],
  bodies: ['live/wire/encodings'],
  clocks: ['long/history/clock-ahead'],
  formats: ['unit/node/data-folder', 'unit/host/data-format', 'long/client/former-parts'],
  'full disk': ['live/client/full-disk'],
  'hosts and tokens': ['unit/http/http-server', 'live/wire/access', 'long/cli/secrets'],
  ids: ['long/mcp/forged-ids', 'unit/objects/ids', 'unit/store/part-id'],
  jars: ['unit/node/install'],
  journals: [
    'unit/journal/recovery',
    'unit/journal/random-damage',
    'unit/journal/failing-disk',
    'long/client/damaged-journal',
  ],
  links: [
    'unit/filesystem/access/read-source',
    'unit/filesystem/access/write-source',
    'unit/filesystem/search/swapped-links',
  ],
  'other sessions': ['long/mcp/other-roots'],
  paths: [
    'unit/filesystem/access/roots',
    'unit/filesystem/access/mounts',
    'unit/filesystem/access/regular-files',
    'live/tools/bad-input',
  ],
  patterns: [
    'unit/filesystem/search/glob',
    'unit/filesystem/search/ignore-rules',
    'unit/filesystem/search/search-text',
  ],
  protocol: ['unit/mcp/stdio-transport', 'long/mcp/stdio', 'live/mcp/http'],
  queries: ['live/wire/query', 'long/wire/limits', 'live/wire/collisions', 'long/wire/front-memory'],
  recordings: [
    'unit/lab/recordings/damaged-recordings',
    'long/replay/torn-recordings',
    'unit/lab/recordings/truncated-recordings',
    'unit/lab/recordings/json-document',
    'live/replay/bad-input',
    'long/replay/large-recordings',
  ],
  stores: ['long/node/durable', 'long/node/private'],
};

/**
 * Folders of suites whose attacks reach a node or server in shared use. A session beside them
 * measures its wait.
 */
const REACHING = ['live/wire/', 'live/mcp/', 'live/harness/', 'live/tools/'];

/** Returns whether a suite of `BOUNDARIES` attacks shared servers. */
export const reachesOthers = (suite) => REACHING.some((folder) => suite.startsWith(folder));
