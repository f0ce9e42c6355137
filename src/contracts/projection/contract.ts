import type { Contract } from '../../cli/contract.js';
import type { ProjectionErrorCode } from './errors.js';

const STATUS: Readonly<Record<ProjectionErrorCode, number>> = { 'invalid-budget': 400, 'budget-too-small': 409 };

/** The basis of the other contracts: errors of views, and redaction rules. */
export const PROJECTION: Contract = {
  http: async () => {
    const { ProjectionError } = await import('./errors.js');
    return {
      statusOf: (error) =>
        error instanceof ProjectionError
          ? { status: STATUS[error.code], title: 'The view is not possible' }
          : undefined,
    };
  },
  hiddenTexts: async () => (await import('./hidden-texts.js')).hiddenTexts,
};
