/** Three availability zones a region, named as AWS does. */
export const zonesOf = (region: string): string[] => ['a', 'b', 'c'].map((letter) => `${region}${letter}`);
