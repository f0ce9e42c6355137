import { Option } from 'commander';
import type { Contract } from '../cli/contract.js';
import { collect } from '../cli/flags.js';
import { maskFlags } from './mask-flags.js';

/** Bundles: a session as one file for other databases. */
export const BUNDLE: Contract = {
  http: async () => (await import('./bundle-http.js')).BUNDLE_HTTP,
  exports: {
    bundle: {
      about: 'one file with the whole session, for palimpsest import into any database (docs/bundle.md)',
      options: maskFlags,
      load: async () => (await import('./bundle-commands.js')).exportBundleFile,
    },
  },
  imports: {
    bundle: {
      about: 'a file from palimpsest export, imported whole or not at all (docs/bundle.md)',
      options: () => [
        new Option('--map <old=new>', 'bundle: map a recorded folder to its place here; repeatable').argParser(collect),
        new Option(
          '--filesystem <old=new>',
          'bundle: map a recorded filesystem id to the one here; repeatable',
        ).argParser(collect),
      ],
      run: async (source, contracts) => (await import('./bundle-commands.js')).importBundleFile(source, contracts),
      finish: async (session, flags) => (await import('./bundle-commands.js')).finishBundle(session, flags),
    },
  },
};
