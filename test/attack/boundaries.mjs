/** The suites elsewhere that are attacks as well, by what they attack: a path of `test/` or its beginning. Each of their tests is one thing that is tried. */
export const BOUNDARIES = {
  paths: ['unit/filesystem/access/roots', 'unit/filesystem/access/mounts', 'unit/filesystem/access/regular-files', 'live/tools/bad-input'],
  links: ['unit/filesystem/access/read-source', 'unit/filesystem/access/write-source', 'unit/filesystem/search/swapped-links'],
  patterns: ['unit/filesystem/search/glob', 'unit/filesystem/search/ignore-rules'],
  'hosts and tokens': ['unit/http/http-server', 'live/wire/access'],
  queries: ['live/wire/query', 'live/wire/limits', 'live/wire/collisions', 'long/wire/front-memory'],
  bodies: ['live/wire/encodings'],
  memory: ['long/mcp/memory'],
  protocol: ['live/mcp/stdio', 'live/mcp/http'],
  journals: ['unit/journal/recovery', 'unit/journal/failing-disk'],
  stores: ['live/node/durable', 'live/node/private'],
  'full disk': ['live/client/full-disk'],
  formats: ['unit/node/data-folder'],
  recordings: [
    'unit/lab/recordings/damaged-recordings',
    'unit/lab/recordings/torn-recordings',
    'unit/lab/recordings/truncated-recordings',
    'live/replay/bad-input',
  ],
};
