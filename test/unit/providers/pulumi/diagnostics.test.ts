import { describe, expect, it } from 'vitest';
import { CoppiceError } from '../../../../operator/api/errors.ts';
import { diagnosticLine, errorsIn, failureOf, tellingDiagnostics } from '../../../../providers/pulumi/diagnostics.ts';

const asIs = (text: string) => text;

describe('diagnosticLine shortens an error:', () => {
  it.each([
    ['plain', 'no such role\n', 'no such role'],
    [
      'a Terraform provider’s, as Pulumi prints it',
      '1 error occurred:\n\t* creating EKS Cluster (c1): ResourceLimitExceeded: 100\n\n',
      'creating EKS Cluster (c1): ResourceLimitExceeded: 100',
    ],
    [
      'one that says where in its source it speaks',
      'sdk-v2/provider2.go:566: sdk.helper_schema: deleting IAM Role: DeleteConflict: provider=aws@7.48.0',
      'deleting IAM Role: DeleteConflict',
    ],
    ['colours', '<{%fg 1%}>error: <{%reset%}>wrong', 'wrong'],
    [
      'a stack of Node’s',
      'Error: no\n    at program (/work/programs.ts:3:9)\n    at async Stack.run (file:///x/stack.js:76:39)',
      'no',
    ],
    ['an error of a program, as the SDK reports it', 'Unhandled exception: Error: no\n    at it (x.ts:1:1)', 'no'],
    ['the same again', 'no\nno\n', 'no'],
  ])('%s', (_, text, expected) => {
    expect(diagnosticLine(text)).toBe(expected);
  });
});

describe('tellingDiagnostics', () => {
  it('drops errors that only repeat another error', () => {
    const said = ['update failed', 'no such role', 'One or more errors occurred', 'no such role'].map((text) => ({
      text,
    }));
    expect(tellingDiagnostics(said, asIs)).toEqual([{ text: 'no such role' }]);
  });
  it('redacts secrets before any other change of the text', () => {
    expect(tellingDiagnostics([{ text: 'key\n* abc' }], (text) => text.replace('key\n* abc', '[secret]'))).toEqual([
      { text: '[secret]' },
    ]);
  });
});

it.each([
  ['errors among the lines of the engine', 'engine', 'Updating\nerror: a\n  error: b\n', ['error: a', 'error: b']],
  ['the last line of an engine that names none', 'engine', 'first\nspawn ENOENT\n', ['spawn ENOENT']],
  ['nothing of an engine that was silent', 'engine', '', []],
  [
    'what we say of a process that died, not its last words',
    'killed',
    'ended by SIGABRT\n4: at x\n',
    ['ended by SIGABRT'],
  ],
] as const)('errorsIn returns %s', (_, kind, output, expected) => {
  expect(errorsIn({ kind, output })).toEqual(expected.map((text) => ({ text })));
});

describe('failureOf', () => {
  const quota = ({ text }: { text: string }) =>
    text.includes('Limit') ? ('ERR_INFRA_QUOTA_EXCEEDED' as const) : undefined;

  it('begins with a cause that is known, with its code, and counts the others', () => {
    const error = failureOf('the update of a', [{ text: 'context canceled' }, { text: 'LimitExceeded' }], {
      classify: quota,
    });
    expect(error).toMatchObject({ code: 'ERR_INFRA_QUOTA_EXCEEDED' });
    expect(error.message).toBe('the update of a failed: LimitExceeded (and 1 more)');
  });
  it('classifies the whole text, and shows its beginning', () => {
    const error = failureOf('the update of a', [{ text: `${'x'.repeat(1_000)} LimitExceeded` }], { classify: quota });
    expect(error).toMatchObject({ code: 'ERR_INFRA_QUOTA_EXCEEDED' });
    expect(error.message.length).toBeLessThan(450);
  });
  it('has no code for an unknown cause', () => {
    const error = failureOf('the update of a', [{ text: 'something' }], { classify: quota });
    expect(error).not.toBeInstanceOf(CoppiceError);
    expect(error.message).toBe('the update of a failed: something');
  });
  it.each([
    [
      "no resource plugin 'pulumi-resource-aws' found in the workspace at version v7.48.0",
      'ERR_RETRYABLE_CONFIGURATION_PROBLEM',
      /plugins\/resource-/,
    ],
    ['getting secrets manager: incorrect passphrase', 'ERR_CONFIGURATION_PROBLEM', /passphrase/],
    ['unable to open bucket s3://state: dial tcp: i/o timeout', 'ERR_RETRYABLE_INFRA_DEPENDENCIES', /state backend/],
  ])('recognizes errors of the engine: %s', (text, code, advice) => {
    const error = failureOf('reading', [{ text }]);
    expect(error).toMatchObject({ code, advice: expect.stringMatching(advice) });
  });
  it('has a message for an engine without output', () => {
    expect(failureOf('the update of a', []).message).toMatch(/did not say why/);
  });
});
