// The machine of the warm-up, as this program stores it. Its secrets protect nothing.
// Written by GOLDEN=update go test ./internal/testgw/front; DO NOT EDIT.
export const SECRETS = {
  ADMIN_TOKEN: "admin-token-admin-token-admin-token-admin-token-",
  API_KEY_SECRET: "key-secret-key-secret-key-secret-key-secret-",
  CREDENTIALS_KEY: "credentials-credentials-credentials-credentials-",
};
export const MACHINE = "vxri7xhp9hsv11v5";
export const API_KEY = "sk-vxri7xhp9hsv11v5-1jlyqcqfrzz16s1l0t9oo4ja5a-7a048d5a";
export const ROWS = [
  [
    "conn:1i01h6n0hjr3f8yxdtp8",
    '{"id":"1i01h6n0hjr3f8yxdtp8","provider":"openai-compatible-0123abcd","authType":"apikey","secrets":{"apiKey":"v1.df2d39de.ekANdTtxBi7LBkPw-hKzpI1Zavx0RGMfaeaj5b0bhY2MwxMCexg"},"priority":0,"providerSpecificData":{"baseUrl":"http://warmup.example/v1","prefix":"r"},"createdAt":1750000000000,"updatedAt":1750000000000,"generation":2,"tokenGeneration":1,"seq":2,"origin":"http://warmup.example"}',
  ],
  [
    "key:1jlyqcqfrzz16s1l0t9oo4ja5a",
    '{"id":"1jlyqcqfrzz16s1l0t9oo4ja5a","digest":"8fc9506cc3c8b3556b086b729a153c1de74f24eb218556f020e99e6beff52876","name":"first key","last4":"8d5a","createdAt":1750000000000,"generation":1,"seq":1}',
  ],
  [
    "meta",
    '{"id":"vxri7xhp9hsv11v5","createdAt":1750000000000,"generation":2,"seq":2,"changed":{"alias":1,"combos":1,"custom":1,"disabled":1,"keys":1,"providers":2,"settings":1},"auditSeq":2,"auditHash":"ddc23dde36e26d8c1e2637c0b34627c65fa24db1f934105908f03cc60f4f14e4","dirty":true,"unregistered":true,"registerFrom":1750000000000,"pruneAt":1750003600000,"alarmAt":1750000000000,"size":659}',
  ],
];
