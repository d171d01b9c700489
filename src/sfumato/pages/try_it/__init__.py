"""The page on which people try a survey before anything leaves their device."""
