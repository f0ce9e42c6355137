/** The suites elsewhere that are attacks as well, by what they attack: a path of `test/`. Each of their tests is one thing that is tried. */
export const BOUNDARIES = {
  arguments: ['live/harness/hostile-arguments', 'unit/objects/kept-args', 'unit/client/delivery/write-record'],
  bodies: ['live/wire/encodings'],
  formats: ['unit/node/data-folder', 'live/client/former-parts'],
  'full disk': ['live/client/full-disk'],
  'hosts and tokens': ['unit/http/http-server', 'live/wire/access', 'live/cli/secrets'],
  ids: ['live/mcp/forged-ids', 'unit/objects/ids', 'unit/store/part-id'],
  journals: ['unit/journal/recovery', 'unit/journal/failing-disk'],
  links: ['unit/filesystem/access/read-source', 'unit/filesystem/access/write-source', 'unit/filesystem/search/swapped-links'],
  memory: ['long/mcp/memory'],
  paths: ['unit/filesystem/access/roots', 'unit/filesystem/access/mounts', 'unit/filesystem/access/regular-files', 'live/tools/bad-input'],
  patterns: ['unit/filesystem/search/glob', 'unit/filesystem/search/ignore-rules', 'unit/filesystem/search/search-text'],
  protocol: ['unit/mcp/stdio-transport', 'live/mcp/stdio', 'live/mcp/http'],
  queries: ['live/wire/query', 'live/wire/limits', 'live/wire/collisions', 'long/wire/front-memory'],
  recordings: [
    'unit/lab/recordings/damaged-recordings',
    'unit/lab/recordings/torn-recordings',
    'unit/lab/recordings/truncated-recordings',
    'unit/lab/recordings/json-document',
    'live/replay/bad-input',
  ],
  stores: ['live/node/durable', 'live/node/private'],
};
