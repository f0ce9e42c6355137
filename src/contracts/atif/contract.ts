import type { Contract } from '../../cli/contract.js';

/**
 * The Agent Trajectory Interchange Format (ATIF), for export. Only the laboratory reads this
 * format.
 */
export const ATIF: Contract = {
  exports: {
    atif: {
      about: 'a trajectory in the Agent Trajectory Interchange Format 1.7, one JSON file (docs/recordings.md)',
      appliesRules: true,
      load: async () => (await import('./export-trajectory.js')).exportTrajectory,
    },
  },
};
