s/MR: .*/MR: [8, 4, 2]/
s/NRV: .*/NRV: [2, 1]/
s/VB: .*/VB: [64, 32, 16]/
s/KC: .*/KC: [256, 32]/
s/MC: .*/MC: [96, 16]/
s/NC: .*/NC: [768, 96]/
s/SPLIT: .*/SPLIT: [0]/
