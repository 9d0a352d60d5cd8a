import { expect, it } from 'vitest';
import { whyUnreachable } from '../../../operator/controllers/membership/dialing.ts';

type Dials = Parameters<typeof whyUnreachable>[0];
const why = (dials: Dials, hub: string, member: string, proxyURL?: string) =>
  whyUnreachable(
    dials,
    { who: 'Hub production', at: { server: hub } },
    { who: 'cluster shop/demo', at: { server: member, proxyURL } },
  );
const FAR = 'https://hub.example.com:6443';
const NEAR = 'https://127.0.0.1:6443';

it.each<[string, Dials, string, string, string | undefined]>([
  ['a hub elsewhere dials no loopback', 'HubToMember', FAR, NEAR, 'only its own machine'],
  ['nor its IPv6 form', 'HubToMember', FAR, 'https://[::1]:6443', 'only its own machine'],
  ['nor its IPv4 form within IPv6', 'HubToMember', FAR, 'https://[::ffff:127.0.0.1]:6443', 'only its own machine'],
  ['nor localhost', 'Both', FAR, 'https://localhost:6443', 'only its own machine'],
  ['nobody dials the address of all', 'HubToMember', NEAR, 'https://0.0.0.0:6443', 'no address to connect to'],
  ['nobody dials what is not there', 'HubToMember', FAR, '', 'no URL'],
  ['a member elsewhere dials no hub on a loopback', 'MemberToHub', NEAR, 'https://10.0.0.1', 'Hub a kubeconfig'],
  ['both ways are looked at', 'Both', NEAR, 'https://10.0.0.1', 'Hub a kubeconfig'],
  ['on one machine the loopback will do', 'Both', NEAR, 'https://127.0.0.1:7443', undefined],
  ['a hub that is dialled does not dial', 'MemberToHub', FAR, NEAR, undefined],
  ['a hub that dials is not dialled', 'HubToMember', NEAR, 'https://10.0.0.1', undefined],
  ['a hub that only tells others dials nobody', 'Neither', FAR, NEAR, undefined],
])('%s', (_, dials, hub, member, part) => {
  const said = why(dials, hub, member);
  if (part === undefined) expect(said).toBeUndefined();
  else expect(said).toContain(part);
});

it('an unreachable connection between hub and member names both ends and the field to set', () => {
  expect(why('HubToMember', FAR, NEAR)).toBe(
    'Hub production at https://hub.example.com:6443 cannot reach cluster shop/demo at https://127.0.0.1:6443, which only its own machine can reach: set member.endpoint of the Hub, or member.proxyURL',
  );
});

it('reachability behind a proxy is left to the proxy', () => {
  expect(why('HubToMember', FAR, NEAR, 'https://proxy.example.com')).toBeUndefined();
});
