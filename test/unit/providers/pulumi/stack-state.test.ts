import { describe, expect, it } from 'vitest';
import {
  hasSecret,
  outputsOf,
  packState,
  resourceNameOf,
  type StackState,
  unpackState,
} from '../../../../providers/pulumi/stack-state.ts';

const secret = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext: 'x' };
const state: StackState = {
  version: 3,
  deployment: {
    secrets_providers: { type: 'passphrase', state: { salt: 's' } },
    resources: [
      { urn: 'u', type: 'pulumi:pulumi:Stack', custom: false, outputs: { endpoint: 'https://a', token: secret } },
      {
        urn: 'v',
        type: 'aws:ec2/vpc:Vpc',
        custom: true,
        id: 'vpc-1',
        sourcePosition: 'project:///x',
        stackTrace: [{}],
      },
    ],
  },
};

describe('the copy of a Pulumi state', () => {
  it('contains all that the state needs, without source positions', async () => {
    const copy = await unpackState(await packState(state));
    expect(copy.deployment?.resources?.[1]).toEqual({ urn: 'v', type: 'aws:ec2/vpc:Vpc', custom: true, id: 'vpc-1' });
    expect(copy.deployment?.secrets_providers).toEqual(state.deployment?.secrets_providers);
    expect(outputsOf(copy)).toEqual(outputsOf(state));
  });
  it('is equal for equal states, so that no write is needed', async () => {
    expect((await packState(state)).equals(await packState(structuredClone(state)))).toBe(true);
  });
});

it('hasSecret detects secrets at any depth', () => {
  expect(hasSecret(outputsOf(state))).toBe(true);
  expect(hasSecret([{ deep: [secret] }])).toBe(true);
  expect(hasSecret({ endpoint: 'https://a', list: [1, null, 'x'] })).toBe(false);
});

it('resourceNameOf returns the logical name of a URN, including colons', () => {
  expect(resourceNameOf('urn:pulumi:s::coppice::a:b/c:C$d:e/f:F::my::name')).toBe('my::name');
});
