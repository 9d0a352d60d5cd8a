import { keepsRecords } from '../../kit/conformance/dns.ts';
import { fakeDNSScene } from '../../kit/conformance/dns-scenes.ts';

for (const name of ['aws', 'gcp', 'azure'] as const) keepsRecords(name, () => fakeDNSScene(name));
