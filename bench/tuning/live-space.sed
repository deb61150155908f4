s/MR: .*/MR: [8, 6, 12]/
s/NRV: .*/NRV: [2, 1, 3]/
s/KC: .*/KC: [256, 64]/
s/MC: .*/MC: [96, 48]/
s/NC: .*/NC: [768, 192]/
s/SPLIT: .*/SPLIT: [0]/
