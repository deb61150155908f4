/* no function of the name that is called */
int nothing;
