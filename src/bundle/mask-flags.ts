import { Option } from 'commander';

/**
 * Returns the flags that select whether an export masks a session's texts or contains every byte.
 */
export const maskFlags = (): readonly Option[] => [
  new Option('--with-redacted', 'export a session even if it has redaction rules, without masking its text'),
  new Option('--redact [rules]', "mask text by the session's rules, a file of rules, and known forms of secrets"),
];
