import { keepsRecords } from '../../kit/conformance/dns.ts';
import { fakeDNSTestbed } from '../../kit/conformance/dns-testbeds.ts';

for (const name of ['aws', 'gcp', 'azure'] as const) keepsRecords(name, () => fakeDNSTestbed(name));
